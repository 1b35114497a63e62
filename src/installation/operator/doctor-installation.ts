/**
 * The checks of `platform doctor` on an installation other than its sandboxes: directory, database, programs, addresses
 * and ports.
 */
import { readFile, stat, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { agentBinary } from "../../sandbox/bundle/agent-binaries.ts";
import type { BuilderReport } from "../../builder/port.ts";
import type { Config } from "../../settings/config.ts";
import { parseMasterKey } from "../../domain/secret/secret.ts";
import { requireGit } from "../../git/run.ts";
import { dialAddress } from "../../domain/service/address.ts";
import { thrownText } from "../../ground/thrown.ts";
import { examineMasterKey } from "../master-keys.ts";
import { repositoriesIn, repositoryPath } from "../../git/repository/repository-path.ts";
import { savesIn } from "../../saves/directories.ts";
import { diskRoom, type DiskRoom } from "../../saves/room.ts";
import { makeUsage } from "../../saves/usage.ts";
import { directoryFault, existingParent, livingOwner } from "../../store/data-directory.ts";
import { hasEmbedded } from "../../store/postgres/embedded/embedded.ts";
import { examineDatabase, type DatabaseState } from "../../store/postgres/examine.ts";
import { Pauses as PausesPort } from "../../store/ports/pauses.ts";
import * as Pauses from "../../store/postgres/pauses.ts";
import * as ProjectChanges from "../../store/postgres/projects/project-changes.ts";
import * as Secrets from "../../store/postgres/projects/secrets.ts";
import { installedDatabase } from "./database.ts";
import { quantity } from "../../domain/counted.ts";

export interface Finding {
  readonly name: string;
  readonly state: "ok" | "warn" | "fail";
  readonly text: string;
  /** The remedy. Null if nothing is wrong. */
  readonly todo: string | null;
}

const GIB = 1024 ** 3;
const MIN_FREE_BYTES = 5 * GIB;

/** What builds the projects' Dockerfiles, from its own report. Null with PLATFORM_BUILDER=none. */
export const builderFinding = (report: BuilderReport | null): Finding => {
  const name = "environments";
  if (report === null) return ok(name, "Dockerfiles have no effect: PLATFORM_BUILDER=none");
  const { builder, problem, note } = report;
  const age = note === undefined ? "" : `, but ${note}`;
  if (problem === null) return ok(name, `${builder} built an image from a Dockerfile${age}`);
  return warn(
    name,
    `${builder} cannot build images, so sessions of projects with a Dockerfile fail`,
    `Cause: ${problem}. If no project needs a Dockerfile, set PLATFORM_BUILDER=none.`,
  );
};

/** A fault of the mail server. Null if it has none, undefined if PLATFORM_SMTP_URL is not set. */
export const mailFinding = (problem: string | null | undefined): Finding => {
  const name = "mail";
  if (problem === undefined) return ok(name, "not set up: people get no mail; see PLATFORM_SMTP_URL");
  if (problem === null) return ok(name, "the mail server answers, and takes the service's login");
  return warn(
    name,
    problem,
    "Correct PLATFORM_SMTP_URL, or start the mail server. Mail waits and is sent later.",
  );
};

const ok = (name: string, text: string): Finding => ({ name, state: "ok", text, todo: null });
const warn = (name: string, text: string, todo: string): Finding => ({ name, state: "warn", text, todo });
const fail = (name: string, text: string, todo: string): Finding => ({ name, state: "fail", text, todo });

/** @param free bytes */
export const diskFinding = (free: number): Finding => {
  const text = `${(free / GIB).toFixed(1)} GiB free`;
  return free >= MIN_FREE_BYTES
    ? ok("disk", text)
    : warn("disk", text, "Free at least 5 GiB on the disk of PLATFORM_DATA_DIR.");
};

/** The share of a project's limit from which its saved work counts as near it, and that of free space that is near too little. */
const NEAR_LIMIT = 0.8;
const NEAR_FREE = 0.12;

/** What the disk and the limits leave for saved work. */
export const savesFinding = (
  { free, total }: DiskRoom,
  projects: readonly { readonly id: string; readonly bytes: number }[],
  limit: number,
): Finding => {
  const bytesUsed = projects.reduce((sum, { bytes }) => sum + bytes, 0);
  const text = `${(bytesUsed / GIB).toFixed(1)} GiB`;
  if (free < NEAR_FREE * total)
    return warn(
      "saved work",
      `${text}, and ${Math.floor((100 * free) / total)} % of the disk is free`,
      "Free some space on the disk of PLATFORM_DATA_DIR: below 10 %, no work is saved.",
    );
  const near = projects.filter(({ bytes }) => bytes >= NEAR_LIMIT * limit).map(({ id }) => id);
  return near.length === 0
    ? ok("saved work", text)
    : warn(
        "saved work",
        `${text}, near the limit of ${near.length === 1 ? "project" : "projects"} ${near.join(", ")}`,
        "Delete unused sessions (`platform sessions saves` lists them by size), or set PLATFORM_SAVES_PROJECT_BYTES.",
      );
};

const savesLook = Effect.fnUntraced(function* ({ dataDir, savesProjectBytes }: Config) {
  const directory = savesIn(dataDir);
  const disk = yield* diskRoom(directory);
  if (disk === null) return [];
  const sizes = makeUsage();
  const projects = yield* Effect.forEach(yield* repositoriesIn(directory), (id) =>
    sizes(repositoryPath(directory, id) ?? directory).pipe(
      Effect.map((sessions) => ({ id, bytes: sessions.reduce((sum, { bytes }) => sum + bytes, 0) })),
      Effect.orElseSucceed(() => ({ id, bytes: 0 })),
    ),
  );
  return [savesFinding(disk, projects, savesProjectBytes)];
});

export const databaseFindings = ({ major, pending, faults }: DatabaseState): readonly Finding[] => {
  if (faults.length > 0)
    return faults.map(({ text, todo }) => fail("database", `Postgres ${major}: ${text}`, todo));
  const text = `Postgres ${major}, ${pending === 0 ? "all migrations applied" : `${quantity(pending, "migration")} pending`}`;
  return [
    pending === 0 ? ok("database", text) : warn("database", text, "Start the service. It applies them."),
  ];
};

const directoryFindings = async ({ dataDir }: Config): Promise<readonly Finding[]> => {
  const { bavail, bsize } = await statfs(await existingParent(dataDir));
  const disk = diskFinding(bavail * bsize);
  const stats = await stat(dataDir).catch(() => null);
  if (stats !== null && !stats.isDirectory())
    return [fail("data directory", `${dataDir} is a file`, "Set PLATFORM_DATA_DIR to a directory."), disk];
  const fault = await directoryFault(dataDir);
  if (fault !== null) return [fail("data directory", `${dataDir} cannot be written`, fault.message), disk];
  if (stats === null)
    return [
      warn("data directory", `${dataDir} does not exist`, "Start the service, or set PLATFORM_DATA_DIR."),
      disk,
    ];
  const text = `${dataDir}, owned by user id ${stats.uid}`;
  const isOwn = stats.uid === process.getuid?.();
  return [
    isOwn ? ok("data directory", text) : warn("data directory", text, "Run doctor as the service's user."),
    disk,
  ];
};

/** Adds the age of the included database, and the way to another. */
const aboutIncluded = (finding: Finding): Finding => ({
  ...finding,
  text: `${finding.text}; included Postgres 18.4, without an update since June 2026: DATABASE_URL names another, such as your distribution's`,
});

/** The start asks this before it asks the database. */
const keyFormFindings = ({ masterKey }: Config): readonly Finding[] =>
  masterKey === null || parseMasterKey(masterKey) !== null
    ? []
    : [
        fail(
          "master key",
          "PLATFORM_MASTER_KEY is not a key",
          "Set it to 64 hexadecimal digits or base64 of 32 bytes.",
        ),
      ];

/** Whether the key is the one that sealed the secrets. */
const keyFinding = ({ dataDir, ...settings }: Config) =>
  examineMasterKey(dataDir, settings).pipe(
    Effect.as(ok("master key", "it is the key of the database's secrets")),
    Effect.catch((error) =>
      Effect.succeed(
        fail("master key", thrownText(error), "The start of the service is refused until then."),
      ),
    ),
    Effect.provide(Layer.provide(Secrets.layer, ProjectChanges.layer)),
  );

/** Only a restored copy has a pause. */
const pauseFindings = Effect.flatMap(PausesPort, ({ since }) => since).pipe(
  Effect.map((since) =>
    since === null
      ? []
      : [
          warn(
            "restored copy",
            `paused since ${new Date(since).toISOString()}: no schedule, no queue, no webhook, no push to another server`,
            "Run `platform admin resume` when the original does not run any more.",
          ),
        ],
  ),
  Effect.provide(Pauses.layer),
);

/** The embedded database runs only as long as this looks, if no service runs it. */
const databaseLook = (config: Config) =>
  Effect.gen(function* () {
    const state = yield* examineDatabase;
    const findings = databaseFindings(state);
    const isReadable = state.faults.length === 0 && state.pending === 0;
    return isReadable ? [...findings, yield* keyFinding(config), ...(yield* pauseFindings)] : findings;
  }).pipe(
    Effect.timeout("30 seconds"),
    Effect.provide(Layer.unwrap(installedDatabase(config))),
    Effect.catch((error) =>
      Effect.succeed([
        fail(
          "database",
          `it cannot be used: ${thrownText(error)}`,
          "Check DATABASE_URL and that the server runs.",
        ),
      ]),
    ),
  );

const allDatabaseFindings = Effect.fnUntraced(function* (config: Config) {
  if (config.databaseUrl !== null) return yield* databaseLook(config);
  if (!(yield* Effect.promise(() => hasEmbedded(config.dataDir))))
    return [aboutIncluded(ok("database", "the first start of the service creates it"))];
  return (yield* databaseLook(config)).map((finding) =>
    finding.name === "database" ? aboutIncluded(finding) : finding,
  );
}, Effect.scoped);

const gitFinding = requireGit.pipe(
  Effect.map((version) => ok("git", version)),
  Effect.catch(({ message }) => Effect.succeed(fail("git", message, "Install a newer git."))),
);

const agentFinding = async ({ runtimes: [own], path: searchPath }: Config): Promise<Finding> => {
  const [program = ""] = own.command;
  const file = agentBinary(own.command, searchPath);
  if (file === null)
    return fail("agent", `${program} is not installed`, "Install it, or set PLATFORM_AGENT_COMMAND.");
  const text = await readFile(path.join(path.dirname(file), "../package.json"), "utf8").catch(() => "");
  const version = /"version":\s*"([^"]+)"/.exec(text)?.[1];
  return ok("agent", `${program} ${version ?? "(version not known)"}, ${file}`);
};

const addressFindings = ({ publicUrl, previewUrl, host, port }: Config): readonly Finding[] => [
  publicUrl === null
    ? ok(
        "public URL",
        `not set: links begin with http://${dialAddress(host)}:${port}; set PLATFORM_PUBLIC_URL to share them`,
      )
    : ok("public URL", publicUrl),
  previewUrl === null
    ? ok("preview URL", "not set: previews use the default; see PLATFORM_PREVIEW_URL")
    : ok("preview URL", `${previewUrl.scheme}://*${previewUrl.suffix}${previewUrl.port}`),
];

const listenError = (host: string, port: number): Promise<string | null> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => resolve(error.message));
    server.listen(port, host, () => server.close(() => resolve(null)));
  });

interface Port {
  readonly setting: string;
  readonly host: string;
  readonly port: number;
}

const portFinding = async ({ setting, host, port }: Port, owner: number | null): Promise<Finding> => {
  const name = `port ${port}`;
  const error = await listenError(host, port);
  if (error === null) return ok(name, "free");
  return owner === null
    ? fail(name, error, `Stop the program that uses it, or set ${setting}.`)
    : ok(name, `in use while the service runs (process id ${owner})`);
};

const portFindings = async (config: Config): Promise<readonly Finding[]> => {
  const owner = await livingOwner(config.dataDir).catch(() => null);
  const ports: readonly Port[] = [
    { setting: "PLATFORM_PORT", host: config.host, port: config.port },
    { setting: "PLATFORM_NODE_PORT", host: config.nodeHost, port: config.nodePort },
  ];
  // 0 means any free port.
  return Promise.all(ports.filter(({ port }) => port !== 0).map((port) => portFinding(port, owner)));
};

export const installationFindings = Effect.fnUntraced(function* (config: Config) {
  return [
    ...config.unknownSettings.map((line) =>
      warn("settings", line, "Correct its name, or remove it from the environment."),
    ),
    ...(yield* Effect.promise(() => directoryFindings(config))),
    ...(yield* savesLook(config)),
    ...keyFormFindings(config),
    ...(yield* allDatabaseFindings(config)),
    yield* gitFinding,
    yield* Effect.promise(() => agentFinding(config)),
    ...addressFindings(config),
    ...(yield* Effect.promise(() => portFindings(config))),
  ];
});

/** For a person: one line for each finding, with its remedy below. */
export const findingLines = (findings: readonly Finding[]): readonly string[] => {
  const width = Math.max(0, ...findings.map(({ name }) => name.length));
  return findings.flatMap(({ name, state, text, todo }) => [
    `  ${name.padEnd(width)}  ${state.padEnd(4)}  ${text}`,
    ...(todo === null ? [] : [`  ${" ".repeat(width)}        ${todo}`]),
  ]);
};
