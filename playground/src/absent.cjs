/** Replaces modules that the page imports but never calls: those of Node, and the driver for real servers. */
module.exports = {}
