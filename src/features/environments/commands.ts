/** `platform environment`: what a project's sandboxes boot on, and the builds of its Dockerfile. */
import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "../../cli/client.ts";
import type { Answer } from "../../cli/contract.ts";
import { command } from "../../cli/command.ts";
import { endpoint } from "../../cli/endpoint/endpoint.ts";
import { EXIT, Failure } from "../../cli/failure.ts";
import { fieldLines, mebibytes, time, safeLine, safeLines } from "../../cli/terminal.ts";
import { anyId, projectId } from "../../cli/words.ts";
import { quantity } from "../../domain/counted.ts";

type Environment = Answer<"GET /v1/projects/:pid/environment">;
type Build = Answer<"GET /v1/projects/:pid/environment/builds/:bid">;

const OPTIONAL_PROJECT = "[PROJECT]";
const BUILD = "BUILD";

const KINDS = {
  machine: "the machine's own files",
  image: "an image",
  dockerfile: "a Dockerfile",
  devcontainer: "a devcontainer.json",
} as const;

const LIVE: ReadonlySet<Build["status"]> = new Set(["queued", "resolving", "building", "exporting"]);

const buildState = ({ status, step }: Build): string =>
  status === "building" && step !== null ? `building, step ${step.step}: ${step.instruction}` : status;

/** The outcome of a build, or its present step. */
const buildResult = (build: Build): string => build.failure?.message ?? buildState(build);

const imageSize = ({ image }: Build): string =>
  image === null ? "" : ` (${mebibytes(image.bytes)}, ${quantity(image.files, "file")})`;

const bootsOn = ({ image_of: image, dockerfile }: Environment): string | null => {
  if (dockerfile === null) return null;
  if (image === null) return "no image yet";
  const isStale = image.key !== dockerfile.key;
  return `${image.id}${imageSize(image)}${isStale ? ", stale: built from an earlier commit" : ""}`;
};

/** The whole command is in the JSON form and on the page. */
const setupLine = (setup: string): string => {
  const [first = "", ...more] = setup.trim().split("\n");
  return more.length === 0 ? first : `${first} … (${more.length + 1} lines)`;
};

const assignments = (args: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(args).map(([name, value]) => `${name}=${value}`);

const joinWords = (words: readonly string[]): string | null => (words.length === 0 ? null : words.join(" "));

/** The source of a build. A registry's image is used as it is, and so has nothing else. */
const sourceFields = ({ dockerfile }: Environment): Parameters<typeof fieldLines>[0] => {
  if (dockerfile === null) return [];
  const { path, base, context, target, args, secrets, commit } = dockerfile;
  if (base !== null)
    return [
      ["base image", base],
      ["commit", commit],
    ];
  return [
    ["dockerfile", path],
    ["context", context === "" ? "the whole repository" : context],
    ["target", target],
    ["arguments", joinWords(assignments(args))],
    ["secrets", joinWords(secrets)],
    ["commit", commit],
  ];
};

const USE_IT = "not used. To use it, set `devcontainer` in [environment] of platform.toml";

/** The devcontainer.json that is used, or that could be. */
const devcontainerFields = ({ devcontainer }: Environment): Parameters<typeof fieldLines>[0] => {
  if (devcontainer === null) return [];
  const { path, used, problem, variables, ignored } = devcontainer;
  // A problem begins with the path.
  if (!used) return [["devcontainer", problem === null ? `${path}, ${USE_IT}` : `not used: ${problem}`]];
  return [
    ["devcontainer", path],
    ["variables", joinWords(assignments(variables))],
    ["ignored", joinWords(ignored)],
  ];
};

/** The commands of a devcontainer.json by their names, otherwise the command. */
const setupText = ({ setup, devcontainer }: Environment): string | null => {
  const names = devcontainer?.commands ?? [];
  if (setup === null) return null;
  return names.length > 0 ? names.join(" ") : setupLine(setup);
};

const readyText = ({ wanted, ready, for_triggers: forTriggers }: Environment["waiting"]): string | null => {
  if (forTriggers > 0) return `${ready}, for a cron trigger that fires soon`;
  return wanted === 0 ? null : `${ready} of ${wanted}`;
};

type Base = Environment["bases"][number];

/** A base image with the digest that its tag has now, and when the registry said so. */
const baseText = (reference: string, base: Omit<Base, "reference">): string => {
  const { digest, built_digest: built, looked_up_at: looked, problem } = base;
  const lookUpText =
    digest === null || looked === null ? "never looked up" : `${digest}, looked up ${time(looked)}`;
  const changeText = digest !== null && built !== null && digest !== built ? ", changed since the build" : "";
  return `${reference} ${lookUpText}${changeText}${problem === null ? "" : `; the last look failed: ${problem}`}`;
};

const environmentText = (environment: Environment): string => {
  const { kind, image, builder, current, bases, waiting } = environment;
  return fieldLines([
    ["environment", KINDS[kind]],
    ["image", image],
    ...devcontainerFields(environment),
    ...sourceFields(environment),
    ["setup", setupText(environment)],
    ["builder", builder ?? "none: Dockerfiles have no effect"],
    ["newest build", current && `${current.id} ${buildResult(current)}`],
    ["sandboxes boot on", builder === null ? null : bootsOn(environment)],
    ...bases.map(({ reference, ...base }): [string, string] => ["made from", baseText(reference, base)]),
    ["ready before a session", readyText(waiting)],
  ]);
};

const show = endpoint("GET /v1/projects/:pid/environment", {
  name: "environment show",
  about: "Show what a project's sandboxes boot on",
  takes: [OPTIONAL_PROJECT],
  shows: environmentText,
});

/** How long a build was under way, or "-". */
const took = ({ begun_at: begun, ended_at: ended }: Build): string => {
  if (begun === null || ended === null) return "-";
  const seconds = Math.round((Date.parse(ended) - Date.parse(begun)) / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
};

const list = endpoint("GET /v1/projects/:pid/environment/builds", {
  name: "environment list",
  about: "List the builds of a project's Dockerfile, newest first",
  takes: [OPTIONAL_PROJECT],
  rows: "builds",
  columns: {
    BUILD: "id",
    STATUS: "status",
    CAUSE: "cause",
    CREATED: "created_at",
    TOOK: took,
    NODE: "node_id",
    COMMIT: ({ commit }) => commit.slice(0, 12),
    FAILURE: ({ failure }) => failure?.message ?? "",
  },
  none: "No builds.",
});

/** Pause before the next look at a log that grows. */
const LOOK_MS = 1000;
const PIECES = 200;

/** Prints text as it comes. */
interface Printer {
  readonly print: (text: string) => void;
  /** Ends the last line. */
  readonly end: () => void;
}

interface Followed {
  readonly client: Client;
  readonly params: { readonly pid: string; readonly bid: string };
  readonly log: Printer;
  readonly note: (line: string) => void;
}

interface Life {
  readonly tries: number;
  readonly status: string;
}

/** Whether the log may still be the one of an earlier try. It is cleared before the build leaves this state. */
const isOldLog = ({ tries, status }: Life): boolean => tries > 1 && status === "resolving";

/** A build that waits has no try yet. Its first one begins nothing again. */
const hasNewTry = (before: Life, now: Life): boolean => now.tries > Math.max(1, before.tries);

/** A build that is begun again begins a new log, from its first piece. */
const hasNewLog = (before: Life, now: Life): boolean =>
  hasNewTry(before, now) || isOldLog(before) !== isOldLog(now);

/** Prints what follows the piece `after`. @returns the last piece's number, and whether nothing will follow */
const printLog = async ({ client, params, log }: Followed, after: number) => {
  for (let from = after; ;) {
    // oxlint-disable-next-line no-await-in-loop -- each page continues after the one before
    const { value } = await client.call("GET /v1/projects/:pid/environment/builds/:bid/log", {
      params,
      query: { after: from, limit: PIECES },
    });
    for (const { number, text } of value.pieces) {
      log.print(text);
      from = number;
    }
    if (value.complete || value.pieces.length < PIECES) return { after: from, complete: value.complete };
  }
};

/** Prints a build's log until the build is over. @returns the build, and the API's own document of it */
const follow = async (target: Followed) => {
  const { client, params, log, note } = target;
  const look = () => client.call("GET /v1/projects/:pid/environment/builds/:bid", { params });
  let build = await look();
  let progress = { after: 0, complete: false };
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- the log grows meanwhile
    if (!isOldLog(build.value)) progress = await printLog(target, progress.after);
    const before = build.value;
    // oxlint-disable-next-line no-await-in-loop -- the newest state, as above
    build = await look();
    if (!hasNewLog(before, build.value)) {
      if (progress.complete) return build;
      // oxlint-disable-next-line no-await-in-loop -- the same
      await pause(LOOK_MS);
      continue;
    }
    progress = { after: 0, complete: false };
    if (!hasNewTry(before, build.value)) continue;
    log.end();
    note("The build begins again.");
  }
};

const printer = (write: (text: string) => void): Printer => {
  let isLineOpen = false;
  return {
    print: (text) => {
      write(safeLines(text));
      if (text !== "") isLineOpen = !text.endsWith("\n");
    },
    end: () => {
      if (isLineOpen) write("\n");
      isLineOpen = false;
    },
  };
};

const build = endpoint("POST /v1/projects/:pid/environment/builds", {
  name: "environment build",
  about: "Build the Dockerfile of the default branch again",
  takes: [OPTIONAL_PROJECT],
  options: { wait: { about: "Print the log until the build is over", sets: null } },
  notes:
    "If a build of the same Dockerfile is under way, the command shows that one. With --wait, it exits with 1 if the build fails or is\n" +
    "cancelled. With --json and --wait, it prints the build at its end, without the log.",
  shows: async ({ id, status, project_id: pid }, { options, json, write, note, api }) => {
    if (!options.wait) return `${id} ${status}`;
    note(`build ${id} ${status}`);
    const log = printer(json ? () => undefined : write);
    const end = await follow({ client: api(), params: { pid, bid: id }, log, note });
    log.end();
    const { failure } = end.value;
    if (failure !== null) {
      const { message } = failure;
      throw new Failure(EXIT.refused, "build_failed", { message, details: { build_id: id, failure } });
    }
    return { json: end.text, text: `${id} ready${imageSize(end.value)}` };
  },
});

/** The newest build of a project. @throws Failure if it has no builds */
const newestBuild = async (client: Client, pid: string): Promise<string> => {
  const { value } = await client.call("GET /v1/projects/:pid/environment/builds", {
    params: { pid },
    query: { limit: 1 },
  });
  const [newest] = value.builds;
  if (newest === undefined)
    throw new Failure(EXIT.notFound, "not_found", { message: "The project has no builds." });
  return newest.id;
};

const logs = command({
  name: "environment logs",
  about: "Print the log of a build until the build is over",
  takes: [OPTIONAL_PROJECT, `[${BUILD}]`],
  inProject: true,
  notes:
    'BUILD defaults to the newest one. With --json, the output is {"log": TEXT, "build": BUILD}, when the build is over.',
  run: async ({ given, json, write, note, api, project }) => {
    const pid = given.PROJECT === undefined ? await project() : projectId(given.PROJECT);
    const buildId = given.BUILD === undefined ? null : anyId(given.BUILD, BUILD);
    const client = api();
    const params = { pid, bid: buildId ?? (await newestBuild(client, pid)) };
    const pieces: string[] = [];
    const log = json
      ? { print: (text: string) => void pieces.push(text), end: () => undefined }
      : printer(write);
    const end = await follow({ client, params, log, note });
    if (json) return { json: JSON.stringify({ log: pieces.join(""), build: end.value }), text: "" };
    log.end();
    note(`build ${params.bid}: ${buildResult(end.value)}`);
    return "writes";
  },
});

const cancel = endpoint("POST /v1/projects/:pid/environment/builds/:bid/cancel", {
  name: "environment cancel",
  asks: "Cancel the build?",
  about: "Cancel a build",
  takes: ["PROJECT", BUILD],
  shows: ({ id, status }, { note }) => {
    if (status !== "cancelled" && !LIVE.has(status)) note("The build was already over.");
    return safeLine(`${id} ${status}`);
  },
});

export const environmentCommands = [show, list, build, logs, cancel];
