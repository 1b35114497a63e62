/** Requests of the agent in a terminal: how they are shown, and which line of a person answers them. */
import { isOpen } from "../../../domain/conversation/growing.ts";
import type { Answer, Request } from "../../contract.ts";

type Conversation = Answer<"GET /v1/projects/:pid/sessions/:sid/conversation">;
export type Item = Conversation["items"][number];
export type GivenAnswer = Request<"POST /v1/projects/:pid/sessions/:sid/requests/:id/answer">["payload"];
type Question = NonNullable<Item["request"]>["questions"][number];

/** Whether the item is a request that a person can answer. */
export const waits = (item: Item): boolean =>
  item.kind === "request" && item.request !== null && isOpen(item) && item.answer === null;

const toolCommand = (input: unknown): string | null => {
  const command = typeof input === "object" && input !== null && "command" in input ? input.command : null;
  return typeof command === "string" ? command : null;
};

/**
 * The commands of the tools at work. A permission names only the parts of a command that need it, without pipes,
 * redirections and loops. A person must see the command as it will run.
 */
export class CommandsAtWork {
  readonly #calls = new Map<string, { readonly turn: string | null; readonly command: string }>();

  /** Takes every item of the conversation, in the order of its events. */
  take(item: Item): void {
    if (item.kind !== "tool") return;
    const command = toolCommand(item.tool?.input);
    if (command !== null && isOpen(item)) this.#calls.set(item.id, { turn: item.turn_id, command });
    else this.#calls.delete(item.id);
  }

  /** The commands for which a permission may be: they contain all of its parts. */
  commandsFor({ request, turn_id }: Item): readonly string[] {
    if (request?.kind !== "permission" || request.patterns.length === 0) return [];
    return [...this.#calls.values()]
      .filter(
        ({ turn, command }) => turn === turn_id && request.patterns.every((part) => command.includes(part)),
      )
      .map(({ command }) => command);
  }
}

const indent = (text: string): string => text.replaceAll("\n", "\n    ");

const permissionLines = (title: string, patterns: readonly string[], commands: readonly string[]) => [
  `The agent asks for permission: ${title}`,
  ...commands.map((command) => `  Command: ${indent(command)}`),
  ...patterns
    .filter((part) => !commands.includes(part))
    .map((part) => `  ${commands.length === 0 ? "" : "Needs permission: "}${indent(part)}`),
];

const questionLines = ({ title, text, options, multiple }: Question, position: string): readonly string[] => [
  `The agent asks${position}: ${text === "" ? title : text}`,
  ...options.map(
    ({ label, description }, index) =>
      `  ${index + 1}. ${label}${description === null || description === "" ? "" : `: ${description}`}`,
  ),
  ...(multiple && options.length > 0 ? ["  Several options may be chosen."] : []),
];

/**
 * What the agent asks.
 *
 * @param commands the commands for which a permission may be
 * @param at for a request with several questions: only the one with this index. Absent: all of them
 */
export const askedLines = (
  { request }: Item,
  commands: readonly string[],
  at?: number,
): readonly string[] => {
  if (request === null) return [];
  const { kind, title, patterns, questions, plan } = request;
  if (plan !== undefined)
    return ["The agent proposes a plan:", ...plan.text.split("\n").map((text) => `  ${text}`)];
  if (kind === "permission") return permissionLines(title, patterns, commands);
  return questions.flatMap((question, index) => {
    const position = questions.length === 1 ? "" : ` (${index + 1} of ${questions.length})`;
    return at === undefined || at === index ? questionLines(question, position) : [];
  });
};

/** How a request ended that somebody else answered. */
export const settledWords = ({ answer }: Item): string =>
  answer?.by === null || answer === null ? "(The agent no longer asks.)" : `(${answer.by.name} answered.)`;

/** The words that answer a request, or its question with this index. One sentence. */
export const howToAnswer = ({ request }: Item, at: number): string => {
  if (request?.kind === "plan") return "Answer y to approve it. Any other line asks for another plan.";
  if (request?.kind === "permission")
    return "Answer y to allow it once, always to allow it from now on, or n to reject it. A reason may follow n.";
  const question = request?.questions[at];
  if (question === undefined || question.options.length === 0) return "Type the answer in one line.";
  const choice = question.multiple
    ? "Answer with numbers or options, separated by commas"
    : "Answer with a number or an option";
  return `${choice}, or with \`/answer TEXT\` in your own words.`;
};

/** A line that is an answer in the person's own words. */
const OWN_WORDS = /^\/answer\s+(.+)$/;
const [ONCE, ALWAYS] = [/^(?:y|yes|once)$/i, /^always$/i];
const REJECT = /^(?:n|no|reject)(?:[\s,:]+(.*))?$/i;

/** The answer that a line gives to a plan. Null if the line is a message, which asks for another plan. */
export const planAnswer = (line: string): GivenAnswer | null => (ONCE.test(line) ? { approve: true } : null);

/** The answer that a line gives to a permission, if it gives one. */
export const permissionAnswer = (line: string): GivenAnswer | null => {
  if (ONCE.test(line)) return { choice: "once" };
  if (ALWAYS.test(line)) return { choice: "always" };
  const rejection = REJECT.exec(line);
  if (rejection === null) return null;
  const [, reason = ""] = rejection;
  return { choice: "reject", ...(reason !== "" && { message: reason }) };
};

const FULL_WORDS: Readonly<Record<string, string>> = { y: "yes", n: "no" };

/** The option that a person names: by its text or its number. */
const findOption = ({ options }: Question, answer: string): string | null => {
  const word = answer.toLowerCase();
  const labels = options.map(({ label }) => label);
  const byText = (text: string) => labels.find((label) => label.trim().toLowerCase() === text);
  const byNumber = /^\d{1,3}$/.test(word) ? labels[Number(word) - 1] : undefined;
  return byText(word) ?? byNumber ?? byText(FULL_WORDS[word] ?? word) ?? null;
};

/** The answer that a line gives to a question, if it gives one: options or own words. */
export const questionAnswer = (question: Question, line: string): readonly string[] | null => {
  const [, own] = OWN_WORDS.exec(line) ?? [];
  if (own !== undefined) return [own];
  if (question.options.length === 0) return [line];
  const whole = findOption(question, line);
  if (whole !== null || !question.multiple) return whole === null ? null : [whole];
  const choices = line.split(",").map((part) => findOption(question, part.trim()));
  const labels = choices.filter((label) => label !== null);
  return labels.length === choices.length ? [...new Set(labels)] : null;
};
