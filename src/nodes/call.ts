/**
 * One node's question to another, and its answer: what a port's operation would be if both were one process. Over the
 * other's API port, sealed (domain/node-credential.ts). What the other refuses is its own error, passed on; anything else
 * that goes wrong on the way means that nothing is known to have happened.
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
} from "../domain/node-credential.ts";
import type { Place } from "./map.ts";

/** Where nodes ask each other. */
export const CALL_PATH = "/v1/nodes/call";
/** A log, a file or a comparison is far shorter; what is longer is no answer of ours. */
export const MESSAGE_LIMIT_BYTES = 64 * 1024 * 1024;
export const SEAL_IV_BYTES = 12;

/** What is asked: an operation by name, with what it is given. */
export const NodeQuestion = Schema.Struct({ operation: Schema.String, given: Schema.Unknown });
export type NodeQuestion = typeof NodeQuestion.Type;

/** What is answered: what came of it, or the error's fields. */
export const NodeAnswer = Schema.Union([
  Schema.Struct({ ok: Schema.Literal(true), value: Schema.Unknown }),
  Schema.Struct({ ok: Schema.Literal(false), error: Schema.Unknown }),
]);
export type NodeAnswer = typeof NodeAnswer.Type;

/** The other node did not answer, or not as a node does. */
export class NodeUnreachable extends Schema.TaggedError<NodeUnreachable>()("NodeUnreachable", {
  message: Schema.String,
}) {}

const unreachable = (why: string) => new NodeUnreachable({ message: `The node cannot be reached: ${why}.` });

const decodeAnswer = Schema.decodeUnknownEffect(Schema.fromJsonString(NodeAnswer));

interface Sending {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Connections are kept between questions: a watched sandbox asks again and again. */
const agent = new Agent({ keepAlive: true, timeout: 1000, scheduling: "lifo" });

const send = ({ url, headers, body }: Sending): Effect.Effect<Buffer, NodeUnreachable> =>
  Effect.callback<Buffer, NodeUnreachable>((resume) => {
    const fail = (why: string) => resume(Effect.fail(unreachable(why)));
    const asked = request(
      url,
      { method: "POST", agent, headers: { ...headers, "content-length": body.length } },
      (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > MESSAGE_LIMIT_BYTES) asked.destroy(new Error("its answer is too long"));
          else chunks.push(chunk);
        });
        answer.on("end", () =>
          answer.statusCode === 200
            ? resume(Effect.succeed(Buffer.concat(chunks)))
            : fail(`it answered ${answer.statusCode ?? 0}`),
        );
        answer.on("error", ({ message }) => fail(message));
      },
    );
    asked.on("error", ({ message }) => fail(message));
    asked.end(body);
    return Effect.sync(() => asked.destroy());
  });

export interface CallerOptions {
  /** This node. */
  readonly self: string;
  readonly keys: NodeKeys;
}

export type NodeCall = (
  to: Extract<Place, { readonly is: "there" }>,
  question: NodeQuestion,
  timeoutMs: number,
) => Effect.Effect<NodeAnswer, NodeUnreachable>;

/** @returns what asks another node. */
export const nodeCaller =
  ({ self, keys }: CallerOptions): NodeCall =>
  (to, question, timeoutMs) =>
    Effect.gen(function* () {
      const at = yield* Clock.currentTimeMillis;
      const asked = { to: to.nodeId, method: "POST", target: CALL_PATH };
      const credential = signNodeRequest(asked, { from: self, at }, keys);
      const body = sealNodeMessage(
        JSON.stringify(question),
        { envelope: { credential, way: "question" }, iv: randomBytes(SEAL_IV_BYTES) },
        keys,
      );
      const sealed = yield* send({
        url: new URL(CALL_PATH, to.url),
        headers: { [NODE_HEADER]: credential, "content-type": "application/octet-stream" },
        body,
      });
      const text = openNodeMessage(sealed, { credential, way: "answer" }, keys);
      if (text === null) return yield* unreachable("the answer does not come from a node of this database");
      return yield* Effect.mapError(decodeAnswer(text), () => unreachable("its answer is malformed"));
    }).pipe(
      Effect.timeoutOrElse({
        duration: timeoutMs,
        orElse: () => Effect.fail(unreachable(`no answer within ${timeoutMs} ms`)),
      }),
    );
