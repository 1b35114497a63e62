/** A request of the agent as a card: what it asks, the form of the answer, and what became of it. */
import { type FormEvent, memo, type ReactNode, useRef } from "react";
import { isOpen, type Item, requestTitle, textOf } from "../reading/model.ts";
import { lackedRole, readOnlyWords } from "../../frame/roles.ts";
import { Badge, Facts, Prose } from "../../ui/parts.tsx";
import { Denial } from "./denial.tsx";
import { useFocusKept } from "../focus.ts";
import { Markdown } from "../text/markdown.tsx";
import { Clock, Folded, type Opened } from "../parts.tsx";
import { Changes } from "./tool.tsx";
import {
  answersReply,
  type Choice,
  choiceReply,
  DECLINED,
  type Draft,
  draftOf,
  type Given,
  OTHER,
  outcomeWord,
  planReply,
  UNANSWERED,
  type Question,
  type Request,
} from "./reply.ts";
import type { Asked, Steering } from "../foot/steering.ts";

export interface Answering {
  readonly steering: Pick<Steering, "answer" | "change" | "refuse">;
  /** What the reader chose and typed, by the request's id. It outlasts the card. */
  readonly drafts: Map<string, Draft>;
}

interface Card extends Answering {
  readonly item: Item;
  /** Absent: nothing is remembered. */
  readonly opened?: Opened;
  readonly asked: Asked;
}

const Codes = ({ texts }: { readonly texts: readonly string[] }) => (
  <ul className="plain">
    {texts.map((text) => (
      <li key={text}>
        <code>{text}</code>
        {text === "*" && " (everything of this kind)"}
      </li>
    ))}
  </ul>
);

/** What is asked, by name. The whole command, because its parts do not say where its output goes. */
const Arguments = ({ request }: { readonly request: Request }) => {
  const { patterns, command, always = [], changes = [] } = request;
  // A change of a file names it.
  const isNamed = command !== undefined || changes.length > 0;
  return (
    <>
      <Changes changes={changes} />
      <Facts
        rows={[
          [
            "Command",
            command !== undefined && (
              <pre className="text command" dir="ltr" tabIndex={0} aria-label="The command">
                {command}
              </pre>
            ),
          ],
          ["For", !isNamed && patterns.length > 0 && <Codes texts={patterns} />],
          ["“Always” allows", always.length > 0 && <Codes texts={always} />],
        ]}
      />
    </>
  );
};

const PermissionForm = ({ draft, asked }: { readonly draft: Draft; readonly asked: Asked }) => (
  <>
    <p className="actions">
      <button type="button" className="primary" data-choice="once" aria-disabled={asked.busy}>
        Allow once
      </button>
      <button type="button" data-choice="always" aria-disabled={asked.busy}>
        Always in this session
      </button>
    </p>
    <Denial name="words" typed={draft["words"]?.[0]} isBusy={asked.busy} />
  </>
);

interface Field {
  readonly question: Question;
  readonly index: number;
  readonly draft: Draft;
}

const Options = ({ question: { options, multiple, text }, index, draft }: Field) => {
  const name = `q${index}`;
  const choice = { type: multiple ? "checkbox" : "radio", name };
  const picked = draft[name] ?? [];
  return (
    <>
      {multiple && <p className="quiet">Choose any of these.</p>}
      {options.map(({ label, description }, at) => (
        <label key={at} className="option">
          <input {...choice} value={at} defaultChecked={picked.includes(String(at))} />
          <span dir="auto">
            {label}
            {description !== null && description !== "" && <span className="quiet"> {description}</span>}
          </span>
        </label>
      ))}
      <p className="option">
        <input
          {...choice}
          value={OTHER}
          defaultChecked={picked.includes(OTHER)}
          aria-label="Another answer"
        />
        <input
          type="text"
          name={`other${index}`}
          dir="auto"
          defaultValue={draft[`other${index}`]?.[0]}
          autoComplete="off"
          placeholder="Another answer"
          aria-label={`In your own words: ${text}`}
        />
      </p>
    </>
  );
};

const QuestionField = (field: Field) => {
  const { question, index, draft } = field;
  return (
    <fieldset className="question">
      <legend>
        {question.title !== "" && <strong>{question.title} </strong>}
        <span className="text" dir="auto">
          {question.text}
        </span>
      </legend>
      {question.options.length > 0 ? (
        <Options {...field} />
      ) : (
        <textarea
          name={`other${index}`}
          rows={2}
          dir="auto"
          defaultValue={draft[`other${index}`]?.[0]}
          aria-label={`In your own words: ${question.text}`}
        />
      )}
    </fieldset>
  );
};

interface Asking {
  readonly request: Request;
  readonly draft: Draft;
  readonly asked: Asked;
}

const QuestionsForm = ({ request, draft, asked }: Asking) => (
  <>
    {request.questions.map((question, index) => (
      <QuestionField key={index} question={question} index={index} draft={draft} />
    ))}
    <p className="actions">
      <button type="submit" className="primary" aria-disabled={asked.busy}>
        Answer
      </button>
    </p>
  </>
);

const PlanForm = ({
  modes,
  draft,
  asked,
}: {
  readonly modes: NonNullable<Request["plan"]>["modes"];
  readonly draft: Draft;
  readonly asked: Asked;
}) => (
  <>
    <p className="actions plan-ways">
      <button type="button" className="primary" data-choice="approve" aria-disabled={asked.busy}>
        Approve
      </button>
      {modes.length > 1 && (
        <>
          <span className="quiet">and go on with</span>
          <select name="mode" aria-label="How the agent goes on" defaultValue={draft["mode"]?.[0]}>
            {modes.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </>
      )}
    </p>
    <textarea
      name="words"
      rows={2}
      dir="auto"
      defaultValue={draft["words"]?.[0]}
      placeholder="What to change"
      aria-label="What to change in the plan"
    />
    <p className="actions">
      <button type="submit" aria-disabled={asked.busy}>
        Ask for another plan
      </button>
    </p>
  </>
);

/** Words that the reader types choose the answer that they belong to. */
const chooseTyped = (input: EventTarget): void => {
  if (!(input instanceof HTMLInputElement)) return;
  const index = /^other(\d+)$/.exec(input.name)?.[1];
  const choice = input.form?.querySelector(`input[name=q${index}][value=${OTHER}]`);
  if (index === undefined || !(choice instanceof HTMLInputElement)) return;
  if (input.value !== "") choice.checked = true;
  else if (choice.type === "checkbox") choice.checked = false;
};

/** The fields of the answer, and its buttons. */
const Fields = ({ request, draft, asked }: Asking) => {
  if (request.plan !== undefined) return <PlanForm modes={request.plan.modes} draft={draft} asked={asked} />;
  return request.kind === "permission" ? (
    <PermissionForm draft={draft} asked={asked} />
  ) : (
    <QuestionsForm request={request} draft={draft} asked={asked} />
  );
};

const AnswerForm = ({ item, request, asked, steering, drafts }: Card & { readonly request: Request }) => {
  const form = useRef<HTMLFormElement>(null);
  useFocusKept(form);
  const draft = drafts.get(item.id) ?? {};
  const answer = (choice: Choice): void => {
    if (form.current === null) return;
    const typed = draftOf(new FormData(form.current));
    const reply =
      request.kind === "permission" ? choiceReply(choice, typed) : answersReply(request.questions, typed);
    if (typeof reply !== "number") {
      void steering.answer(item.id, reply);
      return;
    }
    steering.refuse(item.id, "Answer each question. Your own words are an answer, too.");
    const first = form.current.querySelectorAll("fieldset")[reply]?.querySelector("input, textarea");
    if (first instanceof HTMLElement) first.focus();
  };
  /** To a plan. */
  const decide = (plan: NonNullable<Request["plan"]>, isApproved: boolean): void => {
    if (form.current === null) return;
    const typed = draftOf(new FormData(form.current));
    const words = (typed["words"]?.[0] ?? "").trim();
    if (isApproved) void steering.answer(item.id, planReply(plan, typed));
    else if (words !== "") void steering.change(item.id, words);
    else {
      steering.refuse(item.id, "Write what to change, or approve the plan.");
      form.current.querySelector("textarea")?.focus();
    }
  };
  const press = (event: FormEvent<HTMLFormElement>): void => {
    const pressed = event.target instanceof Element ? event.target.closest("button[type=button]") : null;
    const choice = pressed?.getAttribute("data-choice");
    if (choice === "once" || choice === "always") answer(choice);
    if (choice === "approve" && request.plan !== undefined) decide(request.plan, true);
  };
  return (
    <form
      ref={form}
      className="answer"
      aria-label={requestTitle(request)}
      onInput={({ target, currentTarget }) => {
        chooseTyped(target);
        drafts.set(item.id, draftOf(new FormData(currentTarget)));
      }}
      onClick={press}
      onSubmit={(event) => {
        event.preventDefault();
        if (request.plan === undefined) answer("reject");
        else decide(request.plan, false);
      }}
    >
      <Fields request={request} draft={draft} asked={asked} />
      <p className="refusal" role="alert">
        {asked.problem !== null && <Prose text={asked.problem} />}
      </p>
    </form>
  );
};

const AnsweredQuestion = ({
  question,
  answers,
}: {
  readonly question: Question;
  readonly answers: readonly string[];
}) => (
  <div className="question">
    {question.title !== "" && <h4>{question.title}</h4>}
    <p className="text" dir="auto">
      {question.text}
    </p>
    {answers.length === 0 && question.options.length > 0 && (
      <p className="quiet" dir="auto">
        Options: {question.options.map(({ label }) => label).join(", ")}
      </p>
    )}
    {answers.length > 0 && (
      <p className="given text" dir="auto">
        <strong>{answers.join(", ")}</strong>
      </p>
    )}
  </div>
);

const Answered = ({
  request,
  status,
  answer,
}: {
  readonly request: Request;
  /** Of its item. */
  readonly status: string;
  readonly answer: Given | null;
}): ReactNode => {
  const message = answer !== null && "message" in answer ? (answer.message ?? "") : "";
  return (
    <div className="answered">
      {request.questions.map((question, index) => (
        <AnsweredQuestion
          key={index}
          question={question}
          answers={(answer !== null && "answers" in answer && answer.answers[index]) || []}
        />
      ))}
      {message !== "" && (
        <blockquote className="text" dir="auto">
          {message}
        </blockquote>
      )}
      {answer !== null && "declined" in answer && <p className="quiet">{DECLINED[answer.declined]}</p>}
      {answer === null && status === "interrupted" && <p className="quiet">{UNANSWERED}</p>}
    </div>
  );
};

/** Whom a reader lacks a role to answer sees why. */
const answerRole = (): string | null =>
  lackedRole("answer-request") === null ? null : readOnlyWords("answer-request");

/** What the agent does with a request. */
const LEADS: Readonly<Record<Request["kind"], string>> = {
  question: "The agent asks",
  permission: "The agent asks for permission",
  plan: "The agent proposes a plan",
};

const FORGETS: Opened = { has: () => false, set: () => undefined };

/** The runtime's own words for an answer, which the outcome says. */
const RAW: ReadonlySet<string> = new Set(["once", "always", "reject"]);

/** What a permission is about, in a line. */
const subjectOf = ({ title, command, patterns, changes = [] }: Request): string => {
  const [first, ...others] =
    command !== undefined ? [command] : changes.length > 0 ? changes.map(({ path }) => path) : patterns;
  return [title, first, others.length > 0 && `and ${others.length} more`].filter(Boolean).join(" ");
};

/** A permission that was answered: one line, and the rest for a reader who opens it. */
const SettledPermission = ({
  item,
  request,
  answer,
  opened,
}: Pick<Card, "item"> & {
  readonly opened: Opened;
  readonly request: Request;
  readonly answer: Given | null;
}) => {
  const text = textOf(item);
  const by = answer?.by?.name;
  const subject = `Permission: ${subjectOf(request)}`;
  return (
    <div className="ask-card settled">
      <Folded
        name={item.id}
        opened={opened}
        summary={
          <span className="tool-line">
            <span className="tool-title prose" dir="auto" title={subject}>
              {subject}
            </span>{" "}
            <Badge status={outcomeWord(item.status, answer)} />
            {by !== undefined && <span className="quiet"> by {by}</span>}
          </span>
        }
      >
        {() => (
          <>
            <p className="quiet">
              Asked at <Clock at={item.created_at} />
            </p>
            <Arguments request={request} />
            {text !== "" && !RAW.has(text) && answer === null && <Markdown text={text} />}
          </>
        )}
      </Folded>
      <Answered request={request} status={item.status} answer={answer} />
    </div>
  );
};

export const RequestCard = memo((card: Card) => {
  const { item, asked } = card;
  const { request } = item;
  if (request === null) return null;
  const answer = item.answer ?? asked.settled;
  const isAsking = isOpen(item) && answer === null;
  const by = answer?.by?.name;
  const forbidden = isAsking ? answerRole() : null;
  if (!isAsking && request.kind === "permission")
    return (
      <SettledPermission item={item} request={request} answer={answer} opened={card.opened ?? FORGETS} />
    );
  return (
    <div className="ask-card">
      <p className="said-by">
        <strong>{LEADS[request.kind]}</strong> <Clock at={item.created_at} />{" "}
        <Badge status={outcomeWord(item.status, answer)} />
        {by !== undefined && <span className="quiet"> by {by}</span>}
      </p>
      {/* A runtime may name a question as its only request, too. */}
      {request.title !== "" && request.questions[0]?.title !== request.title && (
        <p className="text" dir="auto">
          {request.title}
        </p>
      )}
      <Arguments request={request} />
      {request.plan !== undefined && <Markdown text={request.plan.text} />}
      {/* A runtime says the answer as the item's text. The questions show it already. */}
      {textOf(item) !== "" && request.plan === undefined && (answer === null || !("answers" in answer)) && (
        <Markdown text={textOf(item)} />
      )}
      {forbidden !== null && <p className="quiet">{forbidden}</p>}
      {isAsking && forbidden === null ? (
        <AnswerForm {...card} request={request} />
      ) : (
        <Answered request={request} status={item.status} answer={answer} />
      )}
    </div>
  );
});
