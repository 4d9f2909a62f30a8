/** Completes a command line with names from the server. Completion scripts call `effect-simba --names WORD...`. */
import * as Jobs from "@effect-simba/core/Jobs"
import { ServiceName } from "@effect-simba/core/streams/StreamStore"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import { mutexes, namesWith } from "./mutexCommands.ts"
import { settings } from "./settings.ts"
import { announcementsOf, known, onStore, services } from "./streamServices.ts"

/** The first argument when a completion script calls the program. */
export const flag = "--names"

/** A short timeout, because the shell blocks on each Tab until the names arrive. */
const patience = "1 second"

const mostStreams = 500

const ofMutexes = Effect.provide(namesWith(""), mutexes)

const ofJobs = (mutex: string) =>
  Effect.map(Jobs.list(mutex), ({ jobs }) => jobs.map(({ name }) => name)).pipe(Effect.provide(mutexes))

const ofStreams = (service: string) =>
  onStore(Effect.gen(function*() {
    const name = yield* Schema.decodeEffect(ServiceName)(service)
    const found = yield* announcementsOf({ name, ...(yield* known(name)) }, mostStreams)
    return found.flatMap(({ content }) => content._tag === "Announced" ? [content.stream] : [])
  }))

/** Which commands take which kind of name. */
const withMutex = new Set(["list", "inspect", "release", "watch", "run"])
const withJob = new Set(["run", "pause", "resume", "reschedule"])
const withStreams = new Set(["seek", "rewind", "trim", "pause", "resume"])
const withManyStreams = new Set(["trim", "pause", "resume"])

const namesAfter = Effect.fnUntraced(function*([command = "", sub = "", ...rest]: ReadonlyArray<string>) {
  const none: ReadonlyArray<string> = []
  if (withMutex.has(command)) return sub === "" ? yield* ofMutexes : none
  if (command === "jobs" && sub !== "") {
    if (rest.length === 0) return yield* ofMutexes
    return rest.length === 1 && withJob.has(sub) ? yield* ofJobs(rest[0]!) : none
  }
  if (command !== "streams" || sub === "" || sub === "list") return none
  if (rest.length === 0) return yield* onStore(services)
  const isNext = withManyStreams.has(sub) || (rest.length === 1 && withStreams.has(sub))
  return isNext ? yield* ofStreams(rest[0]!) : none
})

/** Flags to keep, with their values, because they say how to connect. All other flags are removed with their values. */
const ofConnection = /^--(?:url|sentinel|master|cluster)(?:=|$)/
const withValue =
  /^--(?:ttl|transition|timeout|grace|limit|for|poll-interval|lease-duration|by|keep|stream|cron|time-zone|every|log-level)$/

const withoutOtherFlags = (words: ReadonlyArray<string>) =>
  words.filter((word, at) =>
    word.startsWith("-") ? ofConnection.test(word) : at === 0 || !withValue.test(words[at - 1]!)
  )

const command = Command.make(
  "effect-simba",
  { words: Argument.String("word").pipe(Argument.variadic()) },
  ({ words }) => Effect.flatMap(namesAfter(words), (names) => Console.log([...new Set(names)].sort().join("\n")))
).pipe(Command.withGlobalFlags(settings))

/** Prints the names that can follow these words, one per line. Prints nothing if there is an error. */
export const printNames = (words: ReadonlyArray<string>) =>
  words.includes("--") ? Effect.void : Command.runWith(command, { version: "" })(withoutOtherFlags(words)).pipe(
    Effect.timeoutOption(patience),
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.ignoreCause
  )

/** Extends a shell's completion script: where the script has no suggestions, offers names from the server. */
export const completionsOf: Readonly<Record<string, string>> = {
  bash: `
# Names on the server, where the script above knows no word
_effect_simba_with_names()
{
  _effect_simba "$@"
  [[ \${#COMPREPLY[@]} -gt 0 ]] && return
  local cur prev words cword names
  _init_completion -n "$COMP_WORDBREAKS" || return
  [[ "$cur" == -* ]] && return
  mapfile -t names < <("\${words[0]}" ${flag} "\${words[@]:1:cword-1}" 2>/dev/null)
  _effect_simba--choices "$cur" "$2" "\${names[@]}"
}

complete -F _effect_simba_with_names effect-simba`,
  zsh: `
# Names on the server, where the script above knows no word
_effect_simba_with_names() {
  local program="$words[1]" current="$words[CURRENT]"
  local -a before names
  before=("\${(@)words[2,CURRENT-1]}")
  _effect_simba "$@"
  [[ "$current" == -* ]] && return
  names=("\${(@f)$("$program" ${flag} "\${before[@]}" 2>/dev/null)}")
  [[ -n "$names[1]" ]] && compadd -a names
}

if [[ "\${zsh_eval_context[-1]}" == "loadautofunc" ]]; then
  _effect_simba_with_names "$@"
else
  compdef _effect_simba_with_names effect-simba
fi`,
  fish: `
# Names on the server, where the script above knows no word
function __effect_simba_names
  set -l words (commandline -opc)
  set -l program $words[1]
  set -e words[1]
  $program ${flag} $words 2>/dev/null
end
complete -c effect-simba -n 'not string match -q -- "-*" (commandline -ct)' -f -a '(__effect_simba_names)'`
}
