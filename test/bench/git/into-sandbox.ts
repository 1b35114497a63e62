/** Clones as a session sees them: in its sandbox, by its daemon, checked out, over the service's endpoint. */
import type { Life } from "../../support/service/process-service.ts";

/** When the daemon said this for the first time, in ms. */
const saidAt = (log: string, said: string): number =>
  Date.parse(new RegExp(`^(\\S+) daemon ${said}(?: |$)`, "m").exec(log)?.[1] ?? "");

/**
 * Boots a session of the project, and takes it away again. Rejects when the boot fails.
 *
 * @returns seconds from the daemon's first word until the branch was checked out. The agent runtime starts beside the clone, as in every boot
 */
export const cloneIntoSandbox = async (life: Life, projectId: string): Promise<number> => {
  const sessions = `/v1/projects/${projectId}/sessions`;
  const { id } = (await life.call("POST", sessions, {})) as { readonly id: string };
  const session = await life.session(projectId, id, ["running", "failed"]);
  if (session["status"] !== "running")
    throw new Error(`a boot failed: ${JSON.stringify(session["failure"])}`);
  const log = await life.text(`${sessions}/${id}/logs?follow=0`);
  await life.call("POST", `${sessions}/${id}/stop`);
  await life.session(projectId, id, ["stopped"]);
  await life.call("DELETE", `${sessions}/${id}`);
  return (saidAt(log, "checked out") - saidAt(log, "listening")) / 1000;
};
