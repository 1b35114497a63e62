/**
 * The scripted model's next turn, as a pure function of the conversation so far.
 *
 * The last user message is the prompt. It may contain instructions, one a line:
 *
 *     write <path>: <text>      write that text to that file
 *     run: <command>            run that command in the shell
 *     use <tool>: <json>        call a tool whose name ends so, with these arguments
 *
 * For a prompt with neither, the model writes notes on the prompt to the file that it names in backticks, otherwise to
 * NOTES.md. Then it commits and pushes to the checked-out branch. It makes one tool call in each turn, so the number of
 * calls since the prompt decides the next step: it keeps no state between requests.
 */
import * as Schema from "effect/Schema";

/** The part of a chat-completions request that the script reads. */
export const ChatRequest = Schema.Struct({
  model: Schema.String,
  stream: Schema.optional(Schema.Boolean),
  stream_options: Schema.optional(
    Schema.NullOr(Schema.Struct({ include_usage: Schema.optional(Schema.Boolean) })),
  ),
  messages: Schema.Array(
    Schema.Struct({
      role: Schema.String,
      content: Schema.optional(Schema.Unknown),
      tool_calls: Schema.optional(Schema.NullOr(Schema.Array(Schema.Unknown))),
    }),
  ),
  tools: Schema.optional(
    Schema.NullOr(Schema.Array(Schema.Struct({ function: Schema.Struct({ name: Schema.String }) }))),
  ),
});
export type ChatRequest = typeof ChatRequest.Type;
type Message = ChatRequest["messages"][number];

/** One assistant turn: an answer that ends the run, or one tool call. */
export type Turn =
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "call"; readonly tool: string; readonly input: Readonly<Record<string, string>> };

type Step =
  | { readonly kind: "write"; readonly path: string; readonly text: string }
  | { readonly kind: "run"; readonly command: string; readonly purpose: string }
  | { readonly kind: "use"; readonly tool: string; readonly input: string };

const WRITE_LINE = /^\s*write (?<path>[^\s:]+): ?(?<text>.*)$/;
const RUN_LINE = /^\s*run: ?(?<command>.+)$/;
const USE_LINE = /^\s*use (?<tool>[\w-]+): ?(?<input>\{.*\})$/;
const FILE_IN_BACKTICKS = /`(?<path>[\w./-]+\.\w+)`/;
const AUTHOR = "-c user.name='Scripted Model' -c user.email=scripted-model@localhost";

/** What people can write, for them. */
export const SCRIPTED =
  "A scripted model answers. It understands lines such as `write notes.txt: Hello`, `run: ls -l` and `use board_announce: {…}`. Of anything else it writes a note.";

/** The next turn. The answer to a request without tools (a title, a summary) is the prompt's first line. */
export const nextTurn = (request: ChatRequest): Turn => {
  const promptAt = request.messages.findLastIndex((message) => message.role === "user");
  const prompt = promptAt < 0 ? "" : textOf(request.messages[promptAt]?.content);
  const tools = new Set((request.tools ?? []).map((tool) => tool.function.name));
  if (tools.size === 0) return { kind: "answer", text: firstLine(prompt) };

  const since = request.messages.slice(promptAt + 1);
  const named = namedSteps(prompt);
  const steps = delivered(named.length > 0 ? named : [notesOn(prompt)]);
  const done = since.flatMap((message) => message.tool_calls ?? []).length;
  const failure = failureOf(steps[done - 1], since.at(-1));
  if (failure !== null) return { kind: "answer", text: failure };
  const step = steps[done];
  if (step === undefined) {
    const summary = summaryOf(steps, since.at(-1));
    return { kind: "answer", text: named.length > 0 ? summary : `${summary}\n\n${SCRIPTED}` };
  }
  const call = callOf(step, tools);
  return tools.has(call.tool)
    ? call
    : {
        kind: "answer",
        text: `This step needs a tool named ${call.tool}, but the runtime has no such tool.`,
      };
};

/** The steps that the prompt names. */
const namedSteps = (prompt: string): readonly Step[] =>
  prompt.split("\n").flatMap((line): Step[] => {
    const write = WRITE_LINE.exec(line)?.groups;
    if (write !== undefined) {
      return [{ kind: "write", path: write["path"] ?? "", text: `${write["text"] ?? ""}\n` }];
    }
    const use = USE_LINE.exec(line)?.groups;
    if (use !== undefined) return [{ kind: "use", tool: use["tool"] ?? "", input: use["input"] ?? "" }];
    const command = RUN_LINE.exec(line)?.groups?.["command"];
    return command === undefined ? [] : [{ kind: "run", command, purpose: "Run what the prompt asks for" }];
  });

/** The steps, and a commit of what they write. */
const delivered = (steps: readonly Step[]): readonly Step[] => {
  const paths = steps.flatMap((step) => (step.kind === "write" ? [step.path] : []));
  return paths.length === 0 ? steps : [...steps, ...delivery(paths)];
};

const notesOn = (prompt: string): Step => {
  const path = FILE_IN_BACKTICKS.exec(prompt)?.groups?.["path"] ?? "NOTES.md";
  const quoted = prompt
    .trim()
    .split("\n")
    .map((line) => `> ${line}`.trimEnd());
  return {
    kind: "write",
    path,
    text: ["# Notes", "", "The scripted model was asked:", "", ...quoted, ""].join("\n"),
  };
};

const delivery = (paths: readonly string[]): readonly Step[] => {
  const quoted = paths.map(shellQuote).join(" ");
  const subject = shellQuote(`Write ${paths.join(", ")}`);
  return [
    {
      kind: "run",
      command: `git add -- ${quoted} && git ${AUTHOR} commit -m ${subject}`,
      purpose: "Commit",
    },
    {
      kind: "run",
      command: "git push origin HEAD && git rev-parse HEAD",
      purpose: "Push to the session branch",
    },
  ];
};

const callOf = (step: Step, tools: ReadonlySet<string>): Extract<Turn, { kind: "call" }> => {
  if (step.kind === "use") {
    // A runtime puts the server's name in front of a tool's.
    const tool = [...tools].find((name) => name.endsWith(step.tool)) ?? step.tool;
    return { kind: "call", tool, input: JSON.parse(step.input) as Readonly<Record<string, string>> };
  }
  return step.kind === "write"
    ? { kind: "call", tool: "write", input: { filePath: step.path, content: step.text } }
    : {
        kind: "call",
        tool: "bash",
        // The script can only rely on the exit code, because the wording of results may change.
        input: { command: `${step.command}; echo "exit code $?"`, description: step.purpose },
      };
};

const failureOf = (step: Step | undefined, result: Message | undefined): string | null => {
  if (step === undefined || step.kind === "use" || result?.role !== "tool") return null;
  const output = textOf(result.content);
  const succeeded = step.kind === "write" ? /successfully/i.test(output) : output.includes("exit code 0");
  const name = step.kind === "write" ? `Writing ${step.path}` : step.command;
  return succeeded ? null : `This step failed, and the remaining steps did not run: ${name}\n\n${output}`;
};

const summaryOf = (steps: readonly Step[], result: Message | undefined): string => {
  const paths = steps.flatMap((step) => (step.kind === "write" ? [step.path] : []));
  if (paths.length === 0) return `Done.\n\n${textOf(result?.content)}`;
  const commit = /\b[0-9a-f]{40}\b/.exec(textOf(result?.content))?.[0];
  return `Wrote ${paths.join(", ")} and pushed it${commit === undefined ? "" : ` as commit ${commit}`}.`;
};

/** A message's content is a string or a list of parts; only the text parts count. */
const textOf = (content: unknown): string => {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((part: unknown) =>
      typeof part === "object" && part !== null && "text" in part && typeof part.text === "string"
        ? [part.text]
        : [],
    )
    .join("\n");
};

const firstLine = (prompt: string): string =>
  prompt
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line !== "")
    ?.slice(0, 60) ?? "Untitled";

const shellQuote = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
