/**
 * The bare receiver that the service is measured against, a process of its own: `node:http`, the HMAC over the raw
 * body, one insert a request, 202. As one would write it by hand, and no more.
 */
import { createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import * as pg from "pg";
import { answer, answerWith, serveParent } from "../programs.ts";

const CONNECTIONS = 10;
const PATH = /^\/v1\/webhooks\/projects\/(?<project>[0-9a-f-]{36})\/(?<slug>[a-z0-9_-]+)$/;
const ANSWER = JSON.stringify({ status: "queued" });

const key = createSecretKey(process.env["WEBHOOK_SECRET"] ?? "", "utf8");
const pool = new pg.Pool({
  connectionString: process.env["DATABASE_URL"],
  min: CONNECTIONS,
  max: CONNECTIONS,
});

const isSigned = (body: Buffer, signature: string | string[] | undefined): boolean => {
  if (typeof signature !== "string" || !signature.startsWith("sha256=")) return false;
  const given = Buffer.from(signature.slice("sha256=".length), "hex");
  const expected = createHmac("sha256", key).update(body).digest();
  return given.length === expected.length && timingSafeEqual(given, expected);
};

const receive = async (request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> => {
  const address = PATH.exec(request.url ?? "")?.groups;
  if (request.method !== "POST" || address === undefined) return answer(response, 404, "{}");
  if (!isSigned(body, request.headers["x-hub-signature-256"])) return answer(response, 401, "{}");
  await pool.query({
    name: "keep",
    text: "INSERT INTO deliveries (project, slug, delivery_id, body) VALUES ($1, $2, $3, $4)",
    values: [address["project"], address["slug"], request.headers["x-github-delivery"], body],
  });
  answer(response, 202, ANSWER);
};

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => answerWith(response, receive(request, response, Buffer.concat(chunks))));
});
serveParent(server);
