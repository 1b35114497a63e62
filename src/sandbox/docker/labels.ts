/** How an engine's containers name their sandboxes. */
import { createHash } from "node:crypto";
import type { MachineOptions } from "../machine/options.ts";

export const LABELS = {
  sandbox: "platform.sandbox",
  installation: "platform.installation",
  node: "platform.node",
  runDirectory: "platform.run-directory",
} as const;

/** A name that is unique on this machine: two installations may have a sandbox with the same id. */
export const containerName = (runDir: string, id: string): string =>
  `platform-${createHash("sha256").update(runDir).digest("hex").slice(0, 12)}-${id}`;

export const containerLabels = (
  { installationId, nodeId, runDir }: Pick<MachineOptions, "installationId" | "nodeId" | "runDir">,
  id: string,
): Record<string, string> => ({
  [LABELS.sandbox]: id,
  [LABELS.installation]: installationId,
  [LABELS.node]: nodeId,
  [LABELS.runDirectory]: runDir,
});
