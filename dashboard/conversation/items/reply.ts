/** A reader's answer to a request: what the form has, and what the service gets. It uses no document. */
import type { Item } from "../reading/model.ts";
import type { Reply } from "../foot/steering.ts";

export type Request = NonNullable<Item["request"]>;
export type Question = Request["questions"][number];
export type Given = NonNullable<Item["answer"]>;

/** What the reader chose and typed so far: the form's values by their names. */
export type Draft = Readonly<Record<string, readonly string[]>>;

/** The value of the choice that the reader words. */
export const OTHER = "other";

/** The choices for a permission, in the order of the buttons. */
export type Choice = "once" | "always" | "reject";

export const draftOf = (values: FormData): Draft =>
  Object.fromEntries([...new Set(values.keys())].map((name) => [name, values.getAll(name).map(String)]));

/** @returns for a permission */
export const choiceReply = (choice: Choice, draft: Draft): Reply => {
  const message = (draft["words"]?.[0] ?? "").trim();
  return choice === "reject" && message !== "" ? { choice, message } : { choice };
};

/** @returns for a plan */
export const planReply = ({ modes }: NonNullable<Request["plan"]>, draft: Draft): Reply => ({
  approve: true,
  mode: draft["mode"]?.[0] ?? modes[0]?.id ?? "",
});

/** @returns for questions, or the index of the first one without an answer */
export const answersReply = (questions: readonly Question[], draft: Draft): Reply | number => {
  const answers = questions.map(({ options }, index) => {
    const picked = draft[`q${index}`] ?? [];
    const typed = (draft[`other${index}`]?.[0] ?? "").trim();
    const chosen = options.flatMap(({ label }, at) => (picked.includes(String(at)) ? [label] : []));
    const usesTyped = typed !== "" && (options.length === 0 || picked.includes(OTHER));
    return usesTyped ? [...chosen, typed] : chosen;
  });
  const missing = answers.findIndex((answer) => answer.length === 0);
  return missing === -1 ? { answers } : missing;
};

/** The outcome of a request without an answer. */
const STATUS_WORDS: Readonly<Record<string, string>> = {
  pending: "waiting",
  running: "waiting",
  completed: "answered",
  failed: "declined",
  interrupted: "expired",
  lost: "expired",
};
const CHOICE_WORDS: Readonly<Record<Choice, string>> = {
  once: "allowed once",
  always: "always allowed",
  reject: "denied",
};

const DECLINED_WORDS: Readonly<Record<keyof typeof DECLINED, string>> = {
  unattended: "declined",
  expired: "expired",
  message: "not approved",
};

/** What became of a request, in a word or two. */
export const outcomeWord = (status: string, answer: Given | null): string => {
  if (answer === null) return STATUS_WORDS[status] ?? status;
  if ("approve" in answer) return "approved";
  if ("declined" in answer) return DECLINED_WORDS[answer.declined];
  return "choice" in answer ? CHOICE_WORDS[answer.choice] : "answered";
};

/** Why the service declined it. */
export const DECLINED = {
  unattended: "Declined at once: a trigger started this session, so it has no person to ask.",
  expired: "No answer came in time.",
  message: "A message was written instead.",
};

/** Of a request whose turn ended first. */
export const UNANSWERED =
  "The agent's turn ended before an answer came. You can still answer with a message.";
