// A CommonJS program that imports ES modules at run time.
const main = async () => {
  const { Mutex } = await import("@effect-simba/core")
  const { Effect } = await import("effect")
  const layer = Mutex.layerMemory()
  const token: number = await Effect.runPromise(
    Effect.provide(Mutex.withLock("m")((lease) => Effect.succeed(lease.token)), layer)
  )
  return token
}

main().then((token) => {
  if (!(token > 0)) throw new Error("the mutex does not work")
  console.log("holds")
})
