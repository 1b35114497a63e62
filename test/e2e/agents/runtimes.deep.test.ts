/** Every agent runtime of an installation, with its real program, behind a provider of the account (docs/operate/runtimes.md). */
import { describe } from "vitest";
import { RUNTIME_CASES } from "../../conformance/agents/runtime.ts";
import { runtimeSuite } from "../../conformance/agents/runtime-suite.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { RUNTIME_ROWS } from "../../support/service/sessions/runtime-installation.ts";

describe.runIf(sandboxesStartHere)("an agent runtime", () => {
  runtimeSuite({ rows: RUNTIME_ROWS, settings: {}, cases: RUNTIME_CASES });
});
