/** The thread of descriptions.ts: reads one description and ends. */
import { parentPort, workerData } from "node:worker_threads";
import * as Result from "effect/Result";
import { readDescription, type ReservedNames } from "../domain/connector/openapi/description.ts";
import type { Reading } from "./descriptions.ts";

const { text, names } = workerData as { readonly text: string; readonly names: ReservedNames };
const read = readDescription(text, names);
const reading: Reading = Result.isSuccess(read)
  ? { described: read.success, why: null }
  : { described: null, why: read.failure };
parentPort?.postMessage(reading, []);
