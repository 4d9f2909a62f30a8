/** Replaces modules that the page imports but never calls: Node's own, and the driver for real servers. */
module.exports = {}
