/**
 * Errors and `doctor` findings suggest library options. This table replaces them with the program's flags and
 * environment variables.
 */
const advice: ReadonlyArray<readonly [ofProgram: string, ofCommand: string]> = [
  ["use IoRedis.layerCluster", "use --cluster"],
  ["use IoRedis.layer", "remove --cluster"],
  ["name it in client.sentinels, with client.name", "name it with --sentinel and --master"],
  ["name the Sentinels in client.sentinels", "name the Sentinels with --sentinel and --master"],
  ["in the URL or in client.password", "in the URL or in REDIS_PASSWORD"],
  ["correct client.name", "correct --master"],
  ["use its URL, or the address of a Sentinel", "use it with --url, or the address of a Sentinel"],
  ["set client.sentinelPassword", "set REDIS_SENTINEL_PASSWORD"],
  ["set client.tls.ca to the certificate of its CA", "set NODE_EXTRA_CA_CERTS to the file with its CA's certificate"],
  ["use its name, or set client.tls.servername", "use its name"],
  ["Stop touching what it protects, and acquire it again", "The command was killed"]
]

export const advised = (message: string): string =>
  advice.reduce((text, [ofProgram, ofCommand]) => text.replace(ofProgram, ofCommand), message)
