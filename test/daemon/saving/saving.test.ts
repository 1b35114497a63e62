/** The workspace program, run by this user without a sandbox. */
import { tmpdir } from "node:os";
import { describe } from "vitest";
import { savingConformance } from "../../conformance/sandboxes/saving.ts";
import { workspaceRunner } from "../support/workspace-program.ts";

describe("the workspace program", () => {
  savingConformance({ run: workspaceRunner(), root: tmpdir() });
});
