/** The egress proxy's part of a call of a model: it asks the door, and streams what that answers. */
import { once } from "node:events";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { endToEndHeaders, HOP_BY_HOP, Refusal } from "./egress-messages.ts";
import type { ModelAnswer, ModelRequest, ServeModel } from "./model-door.ts";

/** The length is left out: by it, a caller could see the end of an answer before its settlement has begun. */
const answerHeaders = ({ headers }: ModelAnswer): OutgoingHttpHeaders =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || HOP_BY_HOP.has(name) || name === "content-length" ? [] : [[name, value]],
    ),
  );

/** @returns whether it was answered. @throws Refusal before anything was sent; any error after that, if the answer breaks off */
export const passModel = async (
  serve: ServeModel,
  {
    path,
    gateway,
    incoming,
    outgoing,
  }: Pick<ModelRequest, "path" | "gateway"> & {
    readonly incoming: IncomingMessage;
    readonly outgoing: ServerResponse;
  },
): Promise<boolean> => {
  const left = new AbortController();
  outgoing.on("close", () => left.abort());
  const { method = "GET" } = incoming;
  const reply = await serve({
    method,
    path,
    gateway,
    headers: endToEndHeaders(incoming) as Record<string, string[]>,
    body: method === "GET" ? null : incoming,
    left: left.signal,
  });
  if (reply === null) return false;
  if ("refused" in reply) throw new Refusal(reply.refused, reply.reason);
  outgoing.writeHead(reply.status, answerHeaders(reply));
  for await (const chunk of reply.body)
    if (!outgoing.write(chunk)) await once(outgoing, "drain", { signal: left.signal });
  outgoing.end();
  return true;
};
