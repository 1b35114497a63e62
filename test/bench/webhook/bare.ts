/**
 * The bare receiver that the service is measured against, a process of its own: `node:http`, the HMAC over the raw
 * body, one insert a request where DATABASE_URL is set, 202. As one would write it by hand, and no more.
 */
import { createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import * as pg from "pg";

/** What it says to its parent once it listens. */
export interface Listening {
  readonly port: number;
}

const CONNECTIONS = 10;
const PATH = /^\/v1\/webhooks\/projects\/(?<project>[0-9a-f-]{36})\/(?<slug>[a-z0-9_-]+)$/;
const ANSWER = JSON.stringify({ status: "queued" });

const key = createSecretKey(process.env["WEBHOOK_SECRET"] ?? "", "utf8");
const connectionString = process.env["DATABASE_URL"];
const pool =
  connectionString === undefined
    ? null
    : new pg.Pool({ connectionString, min: CONNECTIONS, max: CONNECTIONS });

const isSigned = (body: Buffer, signature: string | string[] | undefined): boolean => {
  if (typeof signature !== "string" || !signature.startsWith("sha256=")) return false;
  const given = Buffer.from(signature.slice("sha256=".length), "hex");
  const expected = createHmac("sha256", key).update(body).digest();
  return given.length === expected.length && timingSafeEqual(given, expected);
};

const answer = (response: ServerResponse, status: number, body: string): void => {
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
};

const receive = async (request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> => {
  const address = PATH.exec(request.url ?? "")?.groups;
  if (request.method !== "POST" || address === undefined) return answer(response, 404, "{}");
  if (!isSigned(body, request.headers["x-hub-signature-256"])) return answer(response, 401, "{}");
  if (pool !== null) {
    await pool.query({
      name: "keep",
      text: "INSERT INTO deliveries (project, slug, delivery_id, body) VALUES ($1, $2, $3, $4)",
      values: [address["project"], address["slug"], request.headers["x-github-delivery"], body],
    });
  }
  answer(response, 202, ANSWER);
};

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    receive(request, response, Buffer.concat(chunks)).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      answer(response, 500, "{}");
    });
  });
});
server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies Listening);
});
process.on("disconnect", () => process.exit());
