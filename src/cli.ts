/** The `platform` command on the service's machine. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { NodeRuntime, NodeServices } from "@effect/platform-node";
import * as Console from "effect/Console";
import * as Effect from "effect/Effect";
import { Command, Flag } from "effect/cli";
import { randomUUID } from "node:crypto";
import { localOptions } from "./adapters.ts";
import { readConfig } from "./config.ts";
import { doctorReport } from "./sandbox/local/doctor.ts";
import { leaveRunDirectory } from "./sandbox/local/run-directory.ts";
import type { DoctorReport } from "./sandbox/port.ts";

const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print one JSON object for programs"),
  Flag.withDefault(false),
);

const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(path.join(tmpdir(), "platform-doctor-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true })),
);

/** For a person: what holds, what holds it, and what to do where no sandbox starts. */
const readable = ({ provider, usable, problem, findings }: DoctorReport): string => {
  const width = Math.max(0, ...findings.map(({ subject }) => subject.length));
  return [
    `${provider}: ${usable ? "a real sandbox started" : "no sandbox can be started on this machine"}`,
    ...(problem === null ? [] : [problem]),
    ...findings.map(({ subject, how, detail }) => `  ${subject.padEnd(width)}  by ${how}: ${detail}`),
  ].join("\n");
};

const doctor = Command.make(
  "doctor",
  { json },
  Effect.fn(function* (flags) {
    const config = readConfig(process.env, process.cwd());
    const dataDir = yield* temporaryDirectory;
    const installation = { installationId: randomUUID(), nodeId: randomUUID() };
    const options = yield* localOptions({ config, dataDir, installation, port: 0 });
    const report = yield* Effect.ensuring(
      doctorReport(options),
      Effect.ignore(Effect.tryPromise(() => leaveRunDirectory(options.runDir))),
    );
    yield* Console.log(flags.json ? JSON.stringify(report) : readable(report));
    if (!report.usable) yield* Effect.sync(() => (process.exitCode = 1));
  }, Effect.scoped),
).pipe(Command.withDescription("Start one real sandbox here and say what isolates it, and what does not"));

const platform = Command.make("platform").pipe(
  Command.withDescription("The platform's operator commands"),
  Command.withSubcommands([doctor]),
);

NodeRuntime.runMain(Command.run(platform, { version: "0.1.0" }).pipe(Effect.provide(NodeServices.layer)));
