/**
 * The bare server that the service is measured against, a process of its own: `node:http`, `pg`, three prepared
 * selects a request (the token, the project, the session or the page with their conversations), and JSON. As one would
 * write it by hand, and no more. It answers with the service's fields.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import * as pg from "pg";
import { answer, answerWith, serveParent } from "../programs.ts";

/** As many as the service has. */
const CONNECTIONS = 10;
const PATH =
  /^\/v1\/projects\/(?<pid>[0-9a-f-]{36})\/sessions(?:\/(?<sid>[0-9a-f-]{36}))?(?:\?limit=(?<limit>\d+))?$/;

const TOKEN = `
  SELECT token.account_id, token.project_id FROM tokens AS token JOIN users ON users.id = token.user_id
  WHERE token.hash = $1 AND token.revoked_at IS NULL AND (token.expires_at IS NULL OR token.expires_at > now())`;
const PROJECT = "SELECT id FROM projects WHERE id = $1 AND account_id = $2";
const COLUMNS = `
  session.id, project_id, account_id, status, base_ref, base_commit, session.id AS branch_name, name, agent_name, agent_model,
  initial_prompt, metadata, trigger_slug, fire_id, created_by, failure, stop_reason, saved, last_turn,
  session.created_at, updated_at, running_at, stopped_at,
  jsonb_build_object('state', turn_state, 'since', turn_since, 'waiting_for', turn_waiting_for) AS turn, usage
  FROM project_sessions AS session LEFT JOIN conversations AS conversation ON conversation.session_id = session.id`;
const SESSION = `SELECT ${COLUMNS} WHERE session.id = $1 AND project_id = $2 AND deleted_at IS NULL`;
const PAGE = `SELECT ${COLUMNS} WHERE project_id = $1 AND deleted_at IS NULL ORDER BY session.created_at DESC, session.id DESC LIMIT $2`;

const pool = new pg.Pool({
  connectionString: process.env["DATABASE_URL"],
  min: CONNECTIONS,
  max: CONNECTIONS,
});

const rows = async (name: string, text: string, values: readonly unknown[]): Promise<readonly unknown[]> =>
  (await pool.query<Record<string, unknown>>({ name, text, values: [...values] })).rows;

const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { pid, sid, limit } = PATH.exec(request.url ?? "")?.groups ?? {};
  if (request.method !== "GET" || pid === undefined) return answer(response, 404, "{}");
  const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
  const [caller] = await rows("token", TOKEN, [createHash("sha256").update(token).digest("hex")]);
  if (caller === undefined) return answer(response, 401, "{}");
  const { account_id: account } = caller as { readonly account_id: string };
  const [project] = await rows("project", PROJECT, [pid, account]);
  if (project === undefined) return answer(response, 404, "{}");
  if (sid === undefined) {
    const wanted = Number(limit ?? 50);
    const page = await rows("page", PAGE, [pid, wanted + 1]);
    return answer(response, 200, JSON.stringify({ sessions: page.slice(0, wanted), next_cursor: "next" }));
  }
  const [session] = await rows("session", SESSION, [sid, pid]);
  return session === undefined ? answer(response, 404, "{}") : answer(response, 200, JSON.stringify(session));
};

serveParent(createServer((request, response) => answerWith(response, serve(request, response))));
