// A Vitest runner that only collects the tests. At the last file, campaign.test.mjs, it starts the campaign, which runs
// them for each mutant.
import { TestRunner } from "vitest"
import { campaign } from "./campaign.mjs"
import { tests } from "./state.mjs"

export default class MutantRunner extends TestRunner {
  async runTask(test) {
    if (test.file.filepath.endsWith("campaign.test.mjs")) return campaign()
    const run = TestRunner.getTestFn(test)
    tests.push({
      name: `${test.file.name}: ${test.fullTestName ?? test.name}`,
      isLong: test.tags?.includes("long") === true,
      run: (signal) => {
        test.context.signal = signal
        return run()
      }
    })
  }
}
