/** What the reader's role in the shown project allows. The service decides; the page only leaves out what it would refuse. */
import { request } from "../api/client.ts";
import type { Me, ProjectRole } from "../wire.d.ts";

/** How long a known role may be old. */
const FRESH_MS = 5000;

const RANKS: readonly ProjectRole[] = ["viewer", "member", "owner"];

/** A choice of a role in a project. */
export const ROLE_OPTIONS: [string, string][] = [
  ["viewer", "Viewer: reads everything"],
  ["member", "Member: works with agents"],
  ["owner", "Owner: also secrets, settings and members"],
];

/** Buttons and forms that need a role, by their action. */
const NEEDED = {
  viewer: "",
  member:
    "send-message answer-request start-session start-first-session stop-session restart-session delete-save give-credentials ask-agent rename-session archive-session unarchive-session delete-session open-port " +
    "open-change-request close-change-request review-request edit-request fire replay cancel-fire preview propose-trigger " +
    "sync-project approve-call deny-call build-environment cancel-build",
  owner:
    "add-secret set-secret delete-secret try-key make-webhook-secret set-model-key save-project save-roles set-member " +
    "remove-member set-connector-credential authorize-connector refresh-connector accept-connector forget-connector-credential add-receiver test-receiver rotate-receiver disable-receiver enable-receiver remove-receiver replay-delivery replace-credential check-again pause-triggers resume-triggers archive-project reactivate-project delete-project restore-project",
};

/** Null: nothing is forbidden, as far as the page knows. */
let known: { project: string; role: ProjectRole; merge: ProjectRole; at: number } | null = null;
/** Who may open terminals. */
let terminals: Me["terminals"] = "off";

/** Learns the reader's role in the project of the address. An owner of the account is an owner of each project. */
export const learnRole = async (project: string | undefined, me: Me) => {
  terminals = me.terminals;
  if (project === undefined || me.user.role === "owner") known = null;
  else if (known?.project !== project || performance.now() - known.at > FRESH_MS) {
    known = await readRole(project, me.user.id);
  }
};

const readRole = async (project: string, person: string) => {
  const params = { pid: project };
  const [{ members }, { merge_role }] = await Promise.all([
    request("GET /v1/projects/:pid/members", { params }),
    request("GET /v1/projects/:pid", { params }),
  ]);
  const own = members.find(({ user }) => user.id === person);
  return own === undefined ? null : { project, role: own.role, merge: merge_role, at: performance.now() };
};

/** The reader's role in the shown project. Null: an owner of the account, or not known. */
export const knownRole = () => known?.role ?? null;

/** The role that an action needs and the reader lacks, or null. */
export const lackedRole = (action: string) => {
  if (known === null) return null;
  const { role, merge } = known;
  const chosen: Record<string, ProjectRole> = {
    merge,
    "open-terminal": terminals === "owners" ? "owner" : "member",
  };
  const needed = chosen[action] ?? RANKS.find((one) => NEEDED[one].split(" ").includes(action)) ?? "viewer";
  return RANKS.indexOf(needed) > RANKS.indexOf(role) ? needed : null;
};

/** Why the page lacks what others have. Null for an owner. */
export const roleSentence = (project: string): string | null =>
  known?.project !== project || known.role === "owner"
    ? null
    : `Your role in this project is ${known.role}. ${
        known.role === "viewer"
          ? "You can read sessions, runs and changes."
          : "Only owners change secrets and settings."
      } An owner of the project can change your role.`;

/** Actions in a conversation that need a role, in words. */
const READ_ONLY: Record<string, string> = {
  "send-message": "write to the agent",
  "answer-request": "answer the agent",
};

/** What a reader sees in place of it. @param action an entry of `READ_ONLY` */
export const readOnlyWords = (action: string) =>
  `To ${READ_ONLY[action]}, you need the role ${lackedRole(action)} in the project.`;

/** Whether the reader may open a terminal, as far as the page knows: the service has them, and the role allows it. */
export const mayOpenTerminal = () =>
  terminals !== undefined && terminals !== "off" && lackedRole("open-terminal") === null;
