/** Encodes positions as sorted set scores: 26 bits each of longitude and latitude, interleaved. */

const steps = 26
const cells = 2 ** steps
const longitudes = { minimum: -180, maximum: 180 }
/** Limits of the Web Mercator projection. */
const latitudes = { minimum: -85.05112878, maximum: 85.05112878 }
const earthRadius = 6372797.560856

export interface Position {
  readonly longitude: number
  readonly latitude: number
}

export const isPosition = ({ latitude, longitude }: Position): boolean =>
  longitude >= longitudes.minimum && longitude <= longitudes.maximum && latitude >= latitudes.minimum &&
  latitude <= latitudes.maximum

type Range = { readonly minimum: number; readonly maximum: number }

const cellOf = (value: number, { maximum, minimum }: Range): number =>
  Math.floor((value - minimum) / (maximum - minimum) * cells)

/** Interleaves the bits: latitude in the even positions, longitude in the odd ones. */
const interleave = (position: Position, latitudeRange: Range): number => {
  const latitude = cellOf(position.latitude, latitudeRange)
  const longitude = cellOf(position.longitude, longitudes)
  let score = 0
  for (let bit = steps - 1; bit >= 0; bit--) score = score * 4 + (longitude >> bit & 1) * 2 + (latitude >> bit & 1)
  return score
}

export const scoreOf = (position: Position): number => interleave(position, latitudes)

const middle = (cell: number, { maximum, minimum }: Range): number => {
  const size = maximum - minimum
  const center = (minimum + cell / cells * size + (minimum + (cell + 1) / cells * size)) / 2
  return Math.min(maximum, Math.max(minimum, center))
}

/**
 * Redis casts any score to 64 bits, even if it is not a geohash. A score that does not fit becomes 0 or 2^63, as on
 * x86.
 */
const bitsOf = (score: number): bigint => {
  if (score >= 2 ** 64) return 0n
  return score < -(2 ** 63) ? 2n ** 63n : BigInt.asUintN(64, BigInt(Math.trunc(score)))
}

export const positionOf = (score: number): Position => {
  let latitude = 0
  let longitude = 0
  const bits = bitsOf(score)
  const [low, high] = [Number(BigInt.asUintN(32, bits)), Number(bits >> 32n)]
  for (let bit = 0; bit < 16; bit++) {
    latitude += (low >>> 2 * bit & 1) * 2 ** bit + (high >>> 2 * bit & 1) * 2 ** (bit + 16)
    longitude += (low >>> 2 * bit + 1 & 1) * 2 ** bit + (high >>> 2 * bit + 1 & 1) * 2 ** (bit + 16)
  }
  return { latitude: middle(latitude, latitudes), longitude: middle(longitude, longitudes) }
}

const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"

/** The standard geohash of a position: eleven characters, with latitudes up to the poles. */
export const printGeohash = (score: number): string => {
  let bits = BigInt(interleave(positionOf(score), { minimum: -90, maximum: 90 }))
  // Ten characters hold 50 bits, so the eleventh is always zero
  bits >>= 2n
  let text = "0"
  for (let at = 0; at < 10; at++) {
    text = alphabet[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return text
}

const radians = (degrees: number): number => degrees * (Math.PI / 180)

/** The great-circle distance in metres. */
export const distance = (a: Position, b: Position): number => {
  const [first, second] = [radians(a.latitude), radians(b.latitude)]
  const u = Math.sin((second - first) / 2)
  const v = Math.sin((radians(b.longitude) - radians(a.longitude)) / 2)
  return 2 * earthRadius * Math.asin(Math.sqrt(u * u + Math.cos(first) * Math.cos(second) * v * v))
}
