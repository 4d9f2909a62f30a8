/**
 * Prints errors about arguments: two lines for people, or one JSON value for programs. Does not print the help text,
 * which would bury the error.
 */
import * as CliOutput from "effect/cli/CliOutput"
import * as Console from "effect/Console"
import { errorJson } from "./exitCodes.ts"

export const presenter = (isJson: boolean): CliOutput.Presenter => ({
  present: (event) => {
    if (event._tag !== "InvalidInvocation") return CliOutput.defaultPresenter.present(event)
    const message = event.errors.map((error) => error.message).join("; ")
    return isJson
      ? Console.log(errorJson(event.errors[0]!._tag, message))
      : Console.error(`effect-simba: ${message}\nTry "${event.commandPath.join(" ")} --help".`)
  }
})
