/**
 * A sample of the duties of agent runtimes, with opencode and a program of our own that speaks the Agent Client Protocol. The deep tests run
 * every duty, with every runtime.
 */
import { describe } from "vitest";
import { RUNTIME_CASES } from "../../conformance/agents/runtime.ts";
import { runtimeSuite } from "../../conformance/agents/runtime-suite.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { OWN_ROW, RUNTIME_ROWS } from "../../support/service/sessions/runtime-installation.ts";

const SAMPLE: ReadonlySet<string> = new Set([
  "shows thoughts, and a text that grows, in the order in which they came",
  "shows the output of a command",
  "tells the exit code of a command",
  "shows which file it has changed",
  "hears why a command was rejected, and goes on",
  "gets a message that waits once its turn is over",
  "stops in the middle of a text, keeps what it wrote, and goes on",
]);

describe.runIf(sandboxesStartHere)("an agent runtime", () => {
  runtimeSuite({
    rows: [...RUNTIME_ROWS.filter(({ name }) => name === "opencode"), OWN_ROW],
    settings: {},
    cases: RUNTIME_CASES.filter(({ name }) => SAMPLE.has(name)),
  });
});
