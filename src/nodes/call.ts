/**
 * One node's call to another, and its answer. It performs a port's operation on the other node, over that node's API
 * port, sealed (domain/service/node-credential.ts). If the other node refuses, its own error is passed on. After any other
 * failure, the call may or may not have been performed.
 */
import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import {
  NODE_HEADER,
  openNodeMessage,
  sealNodeMessage,
  signNodeRequest,
  type NodeKeys,
} from "../domain/service/node-credential.ts";
import type { NodeMap, Place } from "./map.ts";

/** The path of calls between nodes. */
export const CALL_PATH = "/v1/nodes/call";
/** A log, a file or a comparison is far shorter. A longer answer is invalid. */
export const MESSAGE_LIMIT_BYTES = 64 * 1024 * 1024;
export const SEAL_IV_BYTES = 12;

/** The call: an operation by name, with its arguments. */
export const NodeQuestion = Schema.Struct({ operation: Schema.String, given: Schema.Unknown });
export type NodeQuestion = typeof NodeQuestion.Type;

/** The answer: the result, or the error's fields. */
export const NodeAnswer = Schema.Union([
  Schema.Struct({ ok: Schema.Literal(true), value: Schema.Unknown }),
  Schema.Struct({ ok: Schema.Literal(false), error: Schema.Unknown }),
]);
export type NodeAnswer = typeof NodeAnswer.Type;

/** The other node did not answer, or its answer was invalid. */
export class NodeUnreachable extends Schema.TaggedError<NodeUnreachable>()("NodeUnreachable", {
  message: Schema.String,
  /** The HTTP status of its answer, if it gave one. */
  status: Schema.optionalKey(Schema.Finite),
}) {}

const unreachable = (why: string, status?: number) =>
  new NodeUnreachable({
    message: `The node cannot be reached: ${why}.`,
    ...(status !== undefined && { status }),
  });

const decodeAnswer = Schema.decodeUnknownEffect(Schema.fromJsonString(NodeAnswer));

interface Sending {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Connections are kept between calls, because a watched sandbox is polled again and again. */
const agent = new Agent({ keepAlive: true, timeout: 1000, scheduling: "lifo" });

const send = ({ url, headers, body }: Sending): Effect.Effect<Buffer, NodeUnreachable> =>
  Effect.callback<Buffer, NodeUnreachable>((resume) => {
    const fail = (why: string, status?: number) => resume(Effect.fail(unreachable(why, status)));
    const outgoing = request(
      url,
      { method: "POST", agent, headers: { ...headers, "content-length": body.length } },
      (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > MESSAGE_LIMIT_BYTES) outgoing.destroy(new Error("its answer is too long"));
          else chunks.push(chunk);
        });
        answer.on("end", () =>
          answer.statusCode === 200
            ? resume(Effect.succeed(Buffer.concat(chunks)))
            : fail(`it answered ${answer.statusCode ?? 0}`, answer.statusCode),
        );
        answer.on("error", ({ message }) => fail(message));
      },
    );
    outgoing.on("error", ({ message }) => fail(message));
    outgoing.end(body);
    return Effect.sync(() => outgoing.destroy());
  });

export interface CallerOptions {
  /** This node, and which others are silent. */
  readonly map: Pick<NodeMap["Service"], "self" | "isSilent">;
  readonly keys: NodeKeys;
}

export type NodeCall = (
  to: Extract<Place, { readonly is: "there" }>,
  question: NodeQuestion,
  timeoutMs: number,
) => Effect.Effect<NodeAnswer, NodeUnreachable>;

/** How often a call looks whether its node still gives signs of life. */
const LOOK = "1 second";

/** @returns a function that calls another node. It waits no longer for a node that became silent. */
export const nodeCaller =
  ({ map, keys }: CallerOptions): NodeCall =>
  (to, question, timeoutMs) =>
    Effect.gen(function* () {
      const at = yield* Clock.currentTimeMillis;
      const signedRequest = { to: to.nodeId, method: "POST", target: CALL_PATH };
      const credential = signNodeRequest(signedRequest, { from: map.self, at }, keys);
      const body = sealNodeMessage(
        JSON.stringify(question),
        { envelope: { credential, way: "question" }, iv: randomBytes(SEAL_IV_BYTES) },
        keys,
      );
      const sealedAnswer = yield* send({
        url: new URL(CALL_PATH, to.url),
        headers: { [NODE_HEADER]: credential, "content-type": "application/octet-stream" },
        body,
      });
      const text = openNodeMessage(sealedAnswer, { credential, way: "answer" }, keys);
      if (text === null) return yield* unreachable("the answer does not come from a node of this database");
      return yield* Effect.mapError(decodeAnswer(text), () => unreachable("its answer is malformed"));
    }).pipe(
      Effect.raceFirst(
        Effect.sync(() => map.isSilent(to.nodeId)).pipe(
          Effect.delay(LOOK),
          Effect.repeat({ until: (isSilent) => isSilent }),
          Effect.andThen(unreachable("it became silent")),
        ),
      ),
      Effect.timeoutOrElse({
        duration: timeoutMs,
        orElse: () => Effect.fail(unreachable(`no answer within ${timeoutMs} ms`)),
      }),
    );
