/** What the page of a session reads. */
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import { isOver } from "../environments/build.ts";

export type Session = Answer<"GET /v1/projects/:pid/sessions/:sid">;
export type Sandbox = Answer<"GET /v1/projects/:pid/sessions/:sid/sandbox">;
type Project = Answer<"GET /v1/projects/:pid">;
export type ChangeRequest = Answer<"GET /v1/projects/:pid/change-requests">["change_requests"][number];
type OwnCredentials = Answer<"GET /v1/projects/:pid/sessions/:sid/own-credentials">;
type Build = Answer<"GET /v1/projects/:pid/environment/builds/:bid">;

export interface SessionData {
  readonly project: Project;
  readonly session: Session;
  /** Null: it has none yet, or its record is gone. */
  readonly sandbox: Sandbox | null;
  readonly own: OwnCredentials;
  /** Newest first. */
  readonly changes: readonly ChangeRequest[];
  /** The build for which the sandbox waits. */
  readonly awaited: Build | null;
}

/** The build that the sandbox waits for, while the session starts. */
const readAwaited = async (
  { status, project_id: pid }: Session,
  sandbox: Sandbox | null,
): Promise<Build | null> => {
  const { environment, boot_started_at: begun } = sandbox ?? {};
  if (status !== "provisioning" || begun !== null || !environment) return null;
  const { build_id: bid } = environment;
  const build = await orNull(
    request("GET /v1/projects/:pid/environment/builds/:bid", { params: { pid, bid } }),
  );
  return build === null || isOver(build) ? null : build;
};

/** @param ids of the project and of the session @throws ApiError */
export const readSession = async ([pid = "", sid = ""]: readonly string[]): Promise<SessionData> => {
  const params = { pid, sid };
  const [project, session, sandbox, own, changes] = await Promise.all([
    request("GET /v1/projects/:pid", { params: { pid } }),
    request("GET /v1/projects/:pid/sessions/:sid", { params }),
    orNull(request("GET /v1/projects/:pid/sessions/:sid/sandbox", { params })),
    request("GET /v1/projects/:pid/sessions/:sid/own-credentials", { params }),
    request("GET /v1/projects/:pid/change-requests", {
      params: { pid },
      query: { session_id: sid, limit: 200 },
    }),
  ]);
  return {
    project,
    session,
    sandbox,
    own,
    awaited: await readAwaited(session, sandbox),
    changes: changes.change_requests,
  };
};

/** Whether the sandbox of the session is on its way. */
export const isStarting = ({ activity }: Session): boolean =>
  activity === "queued" || activity === "starting";
