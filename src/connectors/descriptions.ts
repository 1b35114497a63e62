/**
 * Reads OpenAPI descriptions in a thread of their own, one at a time: a large or hostile one costs this process neither its time
 * nor its memory.
 */
import { Worker } from "node:worker_threads";
import * as Effect from "effect/Effect";
import * as Semaphore from "effect/Semaphore";
import type { Described, ReservedNames } from "../domain/connector/openapi/description.ts";
import type { Descriptions } from "./port.ts";

const READ_MS = 20_000;
const MEMORY_MIB = 256;

/** What the thread answers. */
export type Reading =
  | { readonly described: Described; readonly why: null }
  | { readonly described: null; readonly why: string };

const THREAD = new URL("descriptions-thread.ts", import.meta.url);

const readIn = (text: string, names: ReservedNames, memoryMib: number): Effect.Effect<Described, string> =>
  Effect.callback<Described, string>((resume) => {
    const worker = new Worker(THREAD, {
      workerData: { text, names },
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: memoryMib, maxYoungGenerationSizeMb: 32 },
    });
    worker.once("message", ({ described, why }: Reading) =>
      resume(described === null ? Effect.fail(why) : Effect.succeed(described)),
    );
    worker.once("error", () => resume(Effect.fail("It needs too much memory to be read.")));
    worker.once("exit", () => resume(Effect.fail("It cannot be read.")));
    return Effect.promise(async () => void (await worker.terminate()));
  });

/** @param limits tests are impatient. */
export const makeDescriptions = ({
  readMs = READ_MS,
  memoryMib = MEMORY_MIB,
}: { readonly readMs?: number; readonly memoryMib?: number } = {}): Effect.Effect<Descriptions> =>
  Effect.map(Semaphore.make(1), (turn) => ({
    read: (text, names) =>
      turn.withPermit(
        Effect.timeoutOrElse(readIn(text, names, memoryMib), {
          duration: readMs,
          orElse: () => Effect.fail(`Reading it takes longer than ${readMs / 1000} s.`),
        }),
      ),
  }));
