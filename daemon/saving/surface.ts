/**
 * The service's own calls for saved work (saves.md): it lists and reads the workspace, gives the boot the saves to bring back, and
 * ends the agent's side.
 *
 *  V1 Only the service calls. A token of a session or a person does not reach this (server.ts).
 *  V2 A listing waits for a refresh or a change of the environment. Reading waits for nothing, and nothing waits for it: each
 *     content is checked by its digest.
 *  V3 An answer that breaks off is cut off, and never ends as if it were whole.
 *  V4 A call ends with its connection.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import type * as Semaphore from "effect/Semaphore";
import {
  ListRequest,
  ReadRequest,
  readRestorePart,
  RESTORE_PART_HEADER,
  type RestorePart,
} from "../../src/domain/save/listing.ts";
import type { Restored } from "../../src/domain/save/saved.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import { storableText } from "../../src/domain/text.ts";
import {
  answerError,
  answerJson,
  ENDING,
  invalid,
  NO_CHECKOUT,
  refusal,
  type ControlRefusal,
} from "../http/answer.ts";
import { BODY_LIMIT_BYTES, readJson } from "../http/body.ts";
import type { RuntimeAdapter } from "../adapters/adapter.ts";
import type { Log } from "../logs/log.ts";
import type { Report } from "../report.ts";
import type { Settings } from "../settings.ts";
import type { WorkspaceCommand } from "./command.ts";
import { framesFrom, readMemory, NO_MEMORY } from "./memory.ts";
import { readOutput, withProgram } from "./workspace-program.ts";

export type SavingCall = "list" | "read" | "restore" | "retire";

/** Never rejects. */
export type SavingSurface = (
  call: SavingCall,
  request: IncomingMessage,
  response: ServerResponse,
) => Promise<void>;

export interface SavingOptions {
  readonly settings: Settings;
  readonly adapter: Pick<RuntimeAdapter, "record">;
  readonly report: Pick<Report, "checkout">;
  readonly redactor: Redactor;
  readonly log: Log;
  /** Nothing else changes the workspace while a listing has it. */
  readonly quiet: Semaphore.Semaphore;
  /** Gives the boot what it waits for. Null if it waits for nothing. */
  readonly deliver: (body: IncomingMessage, part: RestorePart) => Effect.Effect<Restored> | null;
  /** Ends the runtime and the terminals for good. */
  readonly endAgent: Effect.Effect<void>;
}

/** A listing with what the daemon keeps of it. */
const LIST_MAX_BYTES = 80 * 1024 * 1024;
/** How long programs of the agent may take to end. */
const END_WITHIN = "30 seconds";

const NOT_WANTED = refusal(409, "not_wanted", "This sandbox does not wait for saved work.");

const decodeList = Schema.decodeUnknownOption(ListRequest);
const decodeRead = Schema.decodeUnknownOption(ReadRequest);

export const makeSaving = Effect.fnUntraced(function* (
  options: SavingOptions,
): Effect.fn.Return<SavingSurface, never, Scope.Scope> {
  const scope = yield* Effect.scope;
  const saving = new Saving(options);
  return (call, request, response) => {
    const exchange = Effect.gen(function* () {
      const fiber = yield* Effect.forkIn(saving.answer(call, request, response), scope);
      // V4.
      response.once("close", () => fiber.interruptUnsafe());
      yield* Fiber.join(fiber);
    });
    return Effect.runPromise(Effect.catchCause(exchange, () => Effect.sync(() => cutOff(response))));
  };
});

/** V3. */
const cutOff = (response: ServerResponse): void => {
  if (response.headersSent) response.destroy();
  else answerError(response, ENDING.status, ENDING.body);
};

class Saving {
  readonly #options: SavingOptions;
  /** The last listing. */
  #memory = NO_MEMORY;

  constructor(options: SavingOptions) {
    this.#options = options;
  }

  answer(call: SavingCall, request: IncomingMessage, response: ServerResponse): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      if (call === "restore") return yield* this.#restore(request, response);
      const body = yield* Effect.promise(() => readJson(request, response, BODY_LIMIT_BYTES));
      if (!("value" in body)) return refuse(response, body);
      if (call === "retire") return yield* this.#retire(response);
      if (this.#options.report.checkout !== "done") return refuse(response, NO_CHECKOUT);
      return yield* call === "list" ? this.#list(body.value, response) : this.#read(body.value, response);
    });
  }

  #list(body: unknown, response: ServerResponse): Effect.Effect<void> {
    const request = decodeList(body);
    if (request._tag === "None") return answerRefusal(response, invalid("", "must be a request for a list"));
    const { known, since } = this.#memory;
    const command = { command: "list" as const, request: request.value, known, contentsSince: since };
    // oxlint-disable-next-line no-restricted-properties -- compared with the times of files
    const begunAt = Date.now();
    return this.#options.quiet.withPermit(
      this.#run(command, ({ output, problem }) =>
        Effect.gen({ self: this }, function* () {
          const whole = yield* readOutput(output, LIST_MAX_BYTES);
          const failure = whole === null ? "the list is too long" : yield* problem;
          const end = whole?.indexOf("\n") ?? -1;
          if (whole === null || failure !== null || end < 0) return this.#failed(response, failure);
          this.#memory = readMemory(whole.subarray(0, end), begunAt);
          response.writeHead(200, { "content-type": "application/json" });
          response.end(whole.subarray(end + 1));
        }),
      ),
    );
  }

  #read(body: unknown, response: ServerResponse): Effect.Effect<void> {
    const request = decodeRead(body);
    if (request._tag === "None")
      return answerRefusal(response, invalid("", "must be a request for contents"));
    const frames = framesFrom(this.#memory, request.value);
    if (frames !== null)
      return Effect.sync(() => {
        response.writeHead(200, { "content-type": "application/octet-stream" });
        response.end(frames);
      });
    return this.#run({ command: "read", request: request.value }, ({ output, problem }) =>
      Effect.gen({ self: this }, function* () {
        response.writeHead(200, { "content-type": "application/octet-stream" });
        const isSent = yield* Effect.promise(() =>
          pipeline(output, response, { end: false }).then(
            () => true,
            () => false,
          ),
        );
        const failure = isSent ? yield* problem : "the connection closed";
        if (failure === null) response.end();
        else {
          this.#options.log("work not read", { message: this.#redacted(failure) });
          response.destroy();
        }
      }),
    );
  }

  #restore(request: IncomingMessage, response: ServerResponse): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { [RESTORE_PART_HEADER]: text } = request.headers;
      const part = readRestorePart(text?.toString());
      if (part === null)
        return answerRefusal(response, invalid(RESTORE_PART_HEADER, "must be a number, perhaps with last"));
      const delivery = this.#options.deliver(request, part);
      if (delivery === null) return answerRefusal(response, NOT_WANTED);
      if (request.headers.expect !== undefined) response.writeContinue();
      return Effect.map(delivery, (restoration) => answerJson(response, 200, restoration));
    });
  }

  #retire(response: ServerResponse): Effect.Effect<void> {
    const { endAgent, settings, log } = this.#options;
    return Effect.gen({ self: this }, function* () {
      yield* endAgent;
      // Without a prefix, the agent's programs are no others than the daemon's own.
      if (settings.launch.prefix.length > 0) {
        const end = this.#run({ command: "end", daemonUid: process.getuid?.() ?? 0 }, ({ output, problem }) =>
          Effect.andThen(readOutput(output, 0), problem),
        );
        yield* Effect.timeoutOption(end, END_WITHIN);
      }
      log("the agent's side has ended");
      answerJson(response, 200, { retired: true });
    });
  }

  #run<A>(
    command: Unplaced<WorkspaceCommand>,
    use: Parameters<typeof withProgram<A, never>>[2],
  ): Effect.Effect<A> {
    const { settings, adapter } = this.#options;
    const id = adapter.record?.present() ?? null;
    return withProgram(settings, { ...placeIn(settings, adapter, id), ...command }, use);
  }

  #failed(response: ServerResponse, words: string | null): void {
    const message = this.#redacted(words ?? "the answer is malformed");
    this.#options.log("work not listed", { message });
    answerError(response, 502, {
      error: `The workspace could not be listed: ${message}`,
      code: "save_failed",
    });
  }

  #redacted(text: string): string {
    return this.#options.redactor.redact(storableText(text));
  }
}

type Unplaced<A> = A extends unknown ? Omit<A, "workspace" | "branch" | "repoUrl" | "history"> : never;

/**
 * Where the workspace is, where its branch was pushed, and where the runtime keeps its own record of the conversation.
 *
 * @param id the runtime's id of the present conversation. Null means before the first message
 */
export const placeIn = (
  { layout, launch, branch, repoUrl }: Settings,
  { record }: Pick<RuntimeAdapter, "record">,
  id: string | null,
) => {
  const { HOME: home } = launch.commonEnv;
  const isKept = record !== null && launch.history !== undefined && home !== undefined;
  return {
    workspace: layout.workspace,
    branch,
    repoUrl,
    ...(isKept && { history: { ...launch.history, home, id } }),
  };
};

const refuse = (response: ServerResponse, { status, body }: ControlRefusal): void =>
  answerError(response, status, body);

const answerRefusal = (response: ServerResponse, one: ControlRefusal): Effect.Effect<void> =>
  Effect.sync(() => refuse(response, one));
