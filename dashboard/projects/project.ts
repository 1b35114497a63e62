/** A project and its sessions: their addresses, their names, and what their states mean. It uses no document. */
import { sessionTitle } from "../../src/domain/session/title.ts";
import type { Project, Session } from "../wire.d.ts";

export const repositoryName = ({ repository }: Pick<Project, "repository">): string => {
  if (repository.kind === "github") return `${repository.owner}/${repository.name}`;
  return repository.kind === "git" ? repository.url : "hosted by this service";
};

const LIVE: ReadonlySet<string> = new Set(["provisioning", "running"]);
export const isLive = (status: string): boolean => LIVE.has(status);

const ENDED: ReadonlySet<string> = new Set(["stopped", "failed"]);
/** Whether a restart would give it a new sandbox. */
export const hasEnded = (status: string): boolean => ENDED.has(status);

/** Where the project is in the API. */
export const projectPath = (id: string): string => `/v1/projects/${encodeURIComponent(id)}`;

export const sessionName = (session: Pick<Session, "name" | "trigger_slug" | "initial_prompt">): string =>
  sessionTitle(session.name, session.trigger_slug, session.initial_prompt) ?? "Session";

/** An agent's name, for readers. The one that a project has without naming it is just that. */
export const agentWords = (name: string): string => (name === "default" ? "Agent" : name);

/** Whether the project starts no sessions. One that is deleted waits for its end in this way. */
export const isArchived = ({ status }: Pick<Project, "status">): boolean => status !== "active";

/** The tabs of a project, by the ends of their addresses. */
export type Tab =
  | ""
  | "/triggers"
  | "/fires"
  | "/change-requests"
  | "/usage"
  | "/environment"
  | "/secrets"
  | "/settings";
