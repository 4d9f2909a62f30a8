/** Stands for modules that no part of the page calls: Node's, and the driver of real servers. */
module.exports = {}
