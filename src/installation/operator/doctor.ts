/** `platform doctor`: looks at the installation, starts one real sandbox and says what isolates it. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import type { Environment } from "../../cli/configuration.ts";
import {
  examineMail,
  kubernetesOptions,
  machineKinds,
  machineOptions,
  operatorBuilder,
  type Place,
} from "../../assembly/adapters.ts";
import { buildahBuilder } from "../../builder/buildah/buildah.ts";
import { EnvironmentBuilder } from "../../builder/port.ts";
import { readConfig } from "../../settings/config.ts";
import { kubernetesDoctor } from "../../sandbox/kubernetes/provider.ts";
import { doctorReport } from "../../sandbox/machine/doctor.ts";
import { leaveRunDirectory } from "../../sandbox/machine/disk/run-directory.ts";
import type { DoctorReport } from "../../sandbox/port.ts";
import {
  builderFinding,
  findingLines,
  installationFindings,
  mailFinding,
  type Finding,
} from "./doctor-installation.ts";

interface Report extends DoctorReport {
  readonly installation: readonly Finding[];
}

const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(path.join(tmpdir(), "platform-doctor-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true })),
);

/** What it means that no sandbox started. */
const notStarted = (provider: string): string =>
  provider === "kubernetes" ? "no sandbox was started" : "no sandbox can be started on this machine";

/** For a person: what holds, what holds it, and what to do where no sandbox starts. */
export const readable = ({ provider, usable, problem, findings, installation }: Report): string => {
  const width = Math.max(0, ...findings.map(({ subject }) => subject.length));
  return [
    `${provider}: ${usable ? "a real sandbox started" : notStarted(provider)}`,
    ...(problem === null ? [] : [problem]),
    ...findings.map(
      ({ subject, how, detail }) =>
        `  ${subject.padEnd(width)}  ${how === "not at all" ? "not enforced" : `by ${how}`}: ${detail}`,
    ),
    "installation:",
    ...findingLines(installation),
  ].join("\n");
};

/** Builds one small image, as the service would. */
const builderReport = (place: Parameters<typeof operatorBuilder>[0]) =>
  Effect.flatMap(EnvironmentBuilder, ({ doctor }) => doctor).pipe(
    Effect.provide(buildahBuilder(operatorBuilder(place))),
    Effect.catch(({ message }) => Effect.succeed({ builder: "buildah", usable: false, problem: message })),
  );

const onThisMachine = Effect.fnUntraced(function* (place: Place) {
  const options = yield* machineOptions(place);
  return yield* Effect.ensuring(
    doctorReport(options, machineKinds(place.config)),
    Effect.ignore(Effect.tryPromise(() => leaveRunDirectory(options.runDir))),
  );
});

export const examine = Effect.fnUntraced(function* (environment: Environment) {
  const config = readConfig(environment, process.cwd());
  const dataDir = yield* temporaryDirectory;
  const findings = yield* installationFindings(config);
  const installation = { installationId: randomUUID(), nodeId: randomUUID() };
  const place = { config, dataDir, installation, port: config.port };
  const report =
    config.kubernetes === null
      ? yield* onThisMachine(place)
      : yield* kubernetesDoctor(kubernetesOptions(place, config.kubernetes));
  const mail = yield* examineMail(config);
  const builder = config.builder === "none" ? null : yield* builderReport({ config, dataDir, installation });
  return { ...report, installation: [...findings, mailFinding(mail), builderFinding(builder)] };
}, Effect.scoped);
