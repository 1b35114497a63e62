/**
 * The bare server of events, a process of its own: `node:http` and `pg`. It knows its readers' tokens, listens to one
 * channel of Postgres, reads the new rows with one prepared select, and writes each to all readers of its project, encoded
 * once. Each reader gets a comment every 15 s, as the service's do.
 */
import { createServer, type ServerResponse } from "node:http";
import * as pg from "pg";
import { serveParent } from "../programs.ts";
import { CHANNEL, TABLE } from "./names.ts";

const COMMENT_MS = 15_000;

const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"], min: 1, max: 2 });
const listener = new pg.Client({ connectionString: process.env["DATABASE_URL"] });
await listener.connect();
await listener.query(`LISTEN ${CHANNEL}`);

const readers = new Map<string, Set<ServerResponse>>();
let last = 0;

interface Row {
  readonly id: string;
  readonly project_id: string;
  readonly data: unknown;
}

const SELECT = `SELECT id, project_id, data FROM ${TABLE} WHERE id > $1 ORDER BY id`;
const look = async (): Promise<void> => {
  const { rows } = await pool.query<Row>({ name: "events", text: SELECT, values: [last] });
  for (const { id, project_id: project, data } of rows) {
    last = Number(id);
    const frame = Buffer.from(`id: ${id}\nevent: trigger.fired\ndata: ${JSON.stringify({ data })}\n\n`);
    for (const reader of readers.get(project) ?? []) reader.write(frame);
  }
};
listener.on("notification", () => {
  look().catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exit(1);
  });
});

setInterval(() => {
  for (const all of readers.values()) for (const reader of all) reader.write(": keep\n\n");
}, COMMENT_MS).unref();

const server = createServer((request, response) => {
  const project = request.url?.slice(1) ?? "";
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write("event: open\ndata: {}\n\n");
  const own = readers.get(project) ?? new Set();
  readers.set(project, own.add(response));
  response.on("close", () => own.delete(response));
});
serveParent(server);
