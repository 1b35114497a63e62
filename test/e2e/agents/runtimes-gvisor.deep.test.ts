/** Two agent runtimes under gVisor, whose kernel is another one: one in JavaScript with a compiled program beside it, and one that is compiled. */
import { describe } from "vitest";
import { RUNTIME_CASES } from "../../conformance/agents/runtime.ts";
import { runtimeSuite } from "../../conformance/agents/runtime-suite.ts";
import { lacksRunsc, runsc } from "../../support/machine/runsc.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { RUNTIME_ROWS } from "../../support/service/sessions/runtime-installation.ts";

const lacks = lacksRunsc ?? (sandboxesStartHere ? null : "(needs bubblewrap)");
const NAMES: ReadonlySet<string> = new Set(["claude-code", "codex"]);

describe.skipIf(lacks !== null)(`an agent runtime under gVisor ${lacks ?? ""}`, () => {
  runtimeSuite({
    rows: RUNTIME_ROWS.filter(({ name }) => NAMES.has(name)),
    settings: { PLATFORM_SANDBOX_PROVIDER: "gvisor", PLATFORM_RUNSC: runsc ?? "" },
    // Processes inside are not this kernel's.
    cases: RUNTIME_CASES.filter(({ seesProcesses = false }) => !seesProcesses),
  });
});
