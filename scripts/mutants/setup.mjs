// Patches the fake Redis's Lua machine, so that it runs the active mutant instead of the requested script.
import { sharedLua } from "@effect-simba/fake-redis/Engine"
import { mutation, work } from "./state.mjs"

const vm = await sharedLua()

if (!vm.mutable) {
  vm.mutable = true
  const compile = vm.compile.bind(vm)
  // Stop a looping mutant early: start close to the machine's limit of 200 steps of a million instructions
  const begin = vm.begin.bind(vm)
  vm.begin = (host) => {
    const run = begin(host)
    if (mutation.active !== undefined) run.hooks = 195
    return run
  }
  const indexOf = new Map(work.programs.map(({ text }, index) => [text, index]))
  const covered = work.programs.map(({ covered }) => compile(covered))
  const counting = (host, reached) => ({
    random: host.random,
    call: (args, protocol) => args[0] === "@cov" ? (reached.add(args[1]), null) : host.call(args, protocol)
  })
  vm.compile = (source) => {
    const script = compile(source)
    const index = indexOf.get(source)
    if (index === undefined || typeof script === "string") return script
    return {
      ...script,
      run: (keys, argv, host, sha) => {
        const { active, reached } = mutation
        if (reached !== undefined) return covered[index].run(keys, argv, counting(host, reached), sha)
        const program = active?.programs?.find(([at]) => at === index)
        if (program === undefined) return script.run(keys, argv, host, sha)
        const reply = compile(program[1]).run(keys, argv, host, sha)
        if (vm.current.hooks >= 199) mutation.fail()
        return reply
      }
    }
  }
}
