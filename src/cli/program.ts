/** One call of `platform`, from its arguments to its exit code. */
import { Client } from "./client.ts";
import type { Call, Command, Outcome } from "./command.ts";
import { connectionFrom, type Environment } from "./configuration.ts";
import { projectHere } from "./project-here.ts";
import { EXIT, Failure, usageFailure } from "./failure.ts";
import { readLine, wantsJson, type Wish } from "./grammar.ts";
import { helpText } from "./help.ts";
import { Input } from "./input.ts";
import { resolveId, withIds } from "./references.ts";
import { DEFAULT_COLUMNS, type Screen, safeLine, safeJson, safeLines } from "./terminal.ts";
import { projectId } from "./words.ts";

export const VERSION = "0.1.0";

/** What a call reads and writes. */
export interface Streams {
  /** Standard input, which is not opened before it is needed. */
  readonly stdin: () => NodeJS.ReadStream;
  readonly stdout: {
    readonly write: (text: string) => unknown;
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly hasColors?: () => boolean;
  };
  readonly stderr: { readonly write: (text: string) => unknown; readonly isTTY?: boolean };
}

/** Those of this process. */
const processStreams = (): Streams => {
  for (const stream of [process.stdout, process.stderr])
    // The reader may close its end early (`| head`). That is not a failure: the command has done its work.
    stream.on("error", ({ code }: NodeJS.ErrnoException) =>
      process.exit(code === "EPIPE" ? EXIT.ok : EXIT.refused),
    );
  const { stdout, stderr } = process;
  return { stdin: () => process.stdin, stdout, stderr };
};

/**
 * The project in which a command works. If none is named, it is the only one that the token reaches, because most
 * accounts begin with one, else the one whose repository the directory is a clone of. Otherwise this is an error.
 */
const chooseProject = async (
  api: () => Client,
  option: string | undefined,
  environment: Environment,
): Promise<string> => {
  const scope = { api, project: () => Promise.reject(new Error("a project is not in a project")) };
  if (option !== undefined) return projectId(await resolveId(option, "PROJECT", { scope }), "--project");
  const fromSandbox = environment["PLATFORM_PROJECT_ID"] ?? "";
  if (fromSandbox !== "")
    return projectId(await resolveId(fromSandbox, "PROJECT", { scope }), "PLATFORM_PROJECT_ID");
  const { value } = await api().call("GET /v1/projects", { query: { limit: 2 } });
  const [only, second] = value.projects;
  if (only !== undefined && second === undefined) return only.id;
  if (only === undefined) throw usageFailure("No projects yet. Create one with `platform projects create`.");
  const here = await projectHere(api());
  if (here !== null) return here;
  throw usageFailure(
    "Several projects exist, and this directory is no clone of one of them. Give --project NAME or set PLATFORM_PROJECT_ID. `platform projects list` shows them.",
  );
};

const render = ({ json, text, raw }: Outcome, wantsDocument: boolean, isTerminal: boolean) => {
  if (wantsDocument) return `${safeJson(json).trimEnd()}\n`;
  return raw !== undefined && !isTerminal ? raw : `${text}\n`;
};

const openScreen = (stdout: Streams["stdout"]): Screen | null =>
  stdout.isTTY === true
    ? {
        columns: () => stdout.columns ?? DEFAULT_COLUMNS,
        hasColours: stdout.hasColors?.() ?? false,
        write: (text) => void stdout.write(text),
      }
    : null;

/** To the start of a terminal's line, which is emptied. */
const LINE_START = "\r\u001b[2K";

type Run = Extract<Wish, { kind: "run" }>;

/** Asks a person at a terminal before what cannot be undone. Programs are not asked. @returns whether to go on */
const isMeant = async (
  { asks, asksName }: Command,
  call: Parameters<Command["run"]>[0],
  { stderr }: Streams,
): Promise<boolean> => {
  const { input, options, json } = call;
  if (options["yes"] === true || json || stderr.isTTY !== true || !input.isTerminal) return true;
  if (asksName !== null) {
    const { question, name } = await asksName(call);
    return (await input.line(`${safeLine(question)} `)).trim() === name.trim();
  }
  const question = (await asks?.(call)) ?? null;
  if (question === null) return true;
  return /^y(?:es)?$/i.test((await input.line(`${safeLines(question)} [y/N] `)).trim());
};

interface Program {
  readonly commands: readonly Command[];
  readonly environment: Environment;
  readonly streams: Streams;
}

const perform = async (wish: Run, { commands, environment, streams }: Program): Promise<void> => {
  const { command, rest, json } = wish;
  let client: Client | null = null;
  const api = (): Client => (client ??= new Client(connectionFrom(environment)));
  const { stdin, stdout, stderr } = streams;
  const input = new Input(stdin, (text) => void stderr.write(text));
  let choice: Promise<string> | null = null;
  const project = (): Promise<string> => (choice ??= chooseProject(api, wish.project, environment));
  const call: Call<typeof wish.given, typeof wish.options> = {
    ...wish,
    rest,
    json,
    commands,
    environment,
    input,
    write: (text) => void stdout.write(text),
    screen: json ? null : openScreen(stdout),
    note: (line) => {
      if (!json) stderr.write(`${safeLine(line)}\n`);
    },
    progress:
      stderr.isTTY === true && !json ? (line) => void stderr.write(`${LINE_START}${safeLine(line)}`) : null,
    api,
    project,
  };
  try {
    const ids = await withIds(command, wish, { api, project });
    const whole = { ...call, ...ids };
    if (!(await isMeant(command, whole, streams))) return void stderr.write("Nothing was done.\n");
    const result = await command.run(whole);
    if (result !== "writes") stdout.write(render(result, json, stdout.isTTY === true));
  } finally {
    input.close();
  }
};

/** Conflicting paths and wrong fields: details that a person needs in addition to the sentence. */
const detailLines = ({ details = {} }: Failure): readonly string[] => {
  const { paths, issues } = details;
  if (Array.isArray(paths)) return paths.map((path) => `  ${String(path)}`);
  // The sentence already contains the first one.
  if (Array.isArray(issues) && issues.length > 1)
    return (issues as readonly { path?: unknown; message?: unknown }[]).map(
      ({ path, message }) => `  ${String(path)}: ${String(message)}`,
    );
  return [];
};

const toFailure = (error: unknown): Failure =>
  error instanceof Failure
    ? error
    : new Failure(EXIT.refused, "defect", { message: `Internal error: ${String(error)}` });

const complaint = (failure: Failure, json: boolean): string =>
  json
    ? `${safeJson(failure.document)}\n`
    : [failure.message, ...detailLines(failure), ...failure.lines]
        .map((line) => `${safeLine(line)}\n`)
        .join("");

export interface ProgramCall {
  /** The arguments. */
  readonly line: readonly string[];
  readonly environment: Environment;
  readonly streams: Streams;
}

/** Runs the command of a line. @returns the exit code */
export const runProgram = async (
  commands: readonly Command[],
  { line, environment, streams }: ProgramCall,
): Promise<number> => {
  try {
    const wish = readLine(line, commands);
    const { stdout } = streams;
    if (wish.kind === "help") stdout.write(`${helpText(wish.about, commands)}\n`);
    else if (wish.kind === "version")
      stdout.write(`${wish.json ? JSON.stringify({ version: VERSION }) : VERSION}\n`);
    else await perform(wish, { commands, environment, streams });
    return EXIT.ok;
  } catch (error) {
    const failure = toFailure(error);
    streams.stderr.write(complaint(failure, wantsJson(line)));
    return failure.exit;
  }
};

/** Runs the command of this process's arguments, and sets its exit code. */
export const runProcess = async (commands: readonly Command[], environment: Environment): Promise<void> => {
  const line = process.argv.slice(2);
  const code = await runProgram(commands, { line, environment, streams: processStreams() });
  // A command that shows another program's end has set that program's code.
  if (code !== EXIT.ok) process.exitCode = code;
};
