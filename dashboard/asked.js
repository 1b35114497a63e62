/** A session's calls that wait for a person. Their cards load when one waits. */
import { getJsonOrNull } from "./api.js";
import { bring } from "./later.js";
import { projectPath } from "./project.js";
import { lackedRole } from "./roles.js";

/** A reader who may not decide gets none. @param {string} project @param {string} id @returns {Promise<() => import("./dom.js").Child>} */
export const readAsked = async (project, id) => {
  if (lackedRole("approve-call") !== null) return () => null;
  const query = new URLSearchParams({ session_id: id, status: "pending" });
  const found = await getJsonOrNull(`${projectPath(project)}/approvals?${query}`, [403]);
  const open = found?.approvals ?? [];
  if (open.length === 0) return () => null;
  const { approvalCards } = await bring(() => import("./approvals.js"));
  return () => approvalCards(project, open, { isOfSession: true });
};
