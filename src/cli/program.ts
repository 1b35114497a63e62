/** One call of `platform`, from its arguments to its exit code. */
import { Client } from "./client.ts";
import type { Call, Command, Outcome } from "./command.ts";
import { connectionFrom, type Environment } from "./configuration.ts";
import { EXIT, Failure, usage } from "./failure.ts";
import { readLine, wantsJson, type Wish } from "./grammar.ts";
import { helpText } from "./help.ts";
import { Input } from "./input.ts";
import { visible, visibleJson } from "./terminal.ts";
import { projectId } from "./words.ts";

export const VERSION = "0.1.0";

const out = (text: string): void => void process.stdout.write(text);
const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** The reader may close its end early (`| head`). That is not a failure: the command has done its work. */
const endWithItsReader = (): void => {
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", ({ code }: NodeJS.ErrnoException) =>
      process.exit(code === "EPIPE" ? EXIT.ok : EXIT.refused),
    );
};

/**
 * The project in which a command works. If none is named, it is the only one that the token reaches, because most
 * accounts begin with one. If there are several, this is an error.
 */
const projectOf = async (
  api: () => Client,
  named: string | undefined,
  environment: Environment,
): Promise<string> => {
  if (named !== undefined) return projectId(named, "--project");
  const injected = environment["PLATFORM_PROJECT_ID"] ?? "";
  if (injected !== "") return projectId(injected, "PLATFORM_PROJECT_ID");
  const { value } = await api().call("GET /v1/projects", { query: { limit: 2 } });
  const [only, second] = value.projects;
  if (only !== undefined && second === undefined) return only.id;
  throw usage(
    only === undefined
      ? "No projects yet. Create one with `platform projects create`."
      : "Several projects exist. Give --project ID or set PLATFORM_PROJECT_ID. `platform projects list` shows the ids.",
  );
};

const print = ({ json, text, raw }: Outcome, wantsDocument: boolean): void => {
  if (wantsDocument) out(`${visibleJson(json).trimEnd()}\n`);
  else out(raw !== undefined && !process.stdout.isTTY ? raw : `${text}\n`);
};

const perform = async (wish: Extract<Wish, { kind: "run" }>, environment: Environment): Promise<void> => {
  const { command, given, options, rest, json } = wish;
  let client: Client | null = null;
  const api = (): Client => (client ??= new Client(connectionFrom(environment)));
  const input = new Input(
    () => process.stdin,
    (text) => void process.stderr.write(text),
  );
  const call: Call<typeof given, typeof options> = {
    given,
    options,
    rest,
    json,
    environment,
    input,
    write: out,
    note: (line) => {
      if (!json) say(visible(line));
    },
    api,
    project: () => projectOf(api, wish.project, environment),
  };
  try {
    const result = await command.run(call);
    if (result !== "writes") print(result, json);
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

const complain = (error: unknown, json: boolean): void => {
  const failure =
    error instanceof Failure
      ? error
      : new Failure(EXIT.refused, "defect", { message: `Internal error: ${String(error)}` });
  process.exitCode = failure.exit;
  if (json) say(visibleJson(failure.document));
  else for (const line of [failure.message, ...detailLines(failure)]) say(visible(line));
};

/** Runs the command of a line. The exit code is set when this completes. */
export const runProgram = async (
  commands: readonly Command[],
  line: readonly string[],
  environment: Environment,
): Promise<void> => {
  endWithItsReader();
  try {
    const wish = readLine(line, commands);
    if (wish.kind === "help") out(`${helpText(wish.of, commands)}\n`);
    else if (wish.kind === "version") out(`${wish.json ? JSON.stringify({ version: VERSION }) : VERSION}\n`);
    else await perform(wish, environment);
  } catch (error) {
    complain(error, wantsJson(line));
  }
};
