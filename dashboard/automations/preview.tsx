/** A dialog that shows a trigger's prompt for an imagined fire, without starting anything. */
import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { type ReactNode, useId, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import type { Answer, Request } from "../../src/cli/contract.ts";
import { ApiError } from "../api/api.ts";
import { request } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import { onClose, openDialog } from "../frame/dialog.ts";
import { h } from "../elements/dom.ts";
import { counted, moment } from "../elements/format.ts";
import { isJson, prettyJson } from "../elements/text.ts";
import { Prose } from "../ui/parts.tsx";

type Stored = NonNullable<Answer<"GET /v1/projects/:pid/fires/:id">["request"]>;
type Preview = Answer<"POST /v1/projects/:pid/triggers/:slug/preview">;
type Fire = Request<"POST /v1/projects/:pid/triggers/:slug/preview">["payload"];
type Kind = Fire["kind"];

/** A request, with its body as it is typed. */
interface Imagined {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A trigger, and what the form begins with. */
export interface Previewed {
  readonly pid: string;
  readonly slug: string;
  readonly title: string;
  /** The first is chosen. */
  readonly kinds: readonly Kind[];
  /** Instants at which a cron trigger is due. */
  readonly upcoming: readonly string[];
  /** What the prompt reads of the message of a run by hand. */
  readonly uses: readonly ("text" | "source")[];
  readonly request: Imagined;
}

/** The headers that templates (spec.md 6) and filters use, by their names in requests. */
const HEADERS = [
  ["x-github-event", "X-GitHub-Event"],
  ["content-type", "Content-Type"],
  ["user-agent", "User-Agent"],
  ["x-forwarded-for", "X-Forwarded-For"],
] as const;

/** The content type of forms. A form's body is text, with JSON in its field `payload`. */
const FORM = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** Outcomes of a delivery that does not fire. */
const OUTCOMES: ReadonlyMap<string, string> = new Map([
  ["pong", "This is a ping. The service answers it and does not start a session."],
  ["filtered", "The delivery does not match the trigger's filter. It would not start a session."],
  ["deletion", "The delivery tells of a deleted branch or tag. It would not start a session."],
  ["own_push", "The delivery is a push to a session's own branch. It would not start a session."],
  ["own_request", "The delivery is about the service's own pull request. It would not start a session."],
  ["own_comment", "The delivery is the service's own comment. It would not start a session."],
]);

const given = (entries: readonly (readonly [string, string])[]): Readonly<Record<string, string>> =>
  Object.fromEntries(entries.filter(([, value]) => value !== ""));

/** A stored request as the start of an imagined one. A body that is not JSON is read as the receiver reads it. */
export const imaginedRequest = ({ headers, body }: Stored): Imagined => {
  const isForm = FORM.test(headers?.content_type ?? "") && !isJson(body);
  const raw = JSON.stringify(body === "" ? {} : { raw: body }, null, 2);
  return {
    body: isForm ? body : (prettyJson(body) ?? (isJson(body) ? body : raw)),
    headers: given([
      ["content-type", headers?.content_type ?? ""],
      ["user-agent", headers?.user_agent ?? ""],
      ["x-forwarded-for", headers?.forwarded_for ?? ""],
    ]),
  };
};

/** What is typed. */
interface Typed extends Imagined {
  readonly kind: Kind;
  readonly at: string;
  readonly text: string;
  readonly source: string;
}

/** @throws a SyntaxError if the body is not JSON */
const fireOf = ({ kind, at, text, source, headers, body: typed }: Typed): Fire => {
  if (kind === "cron") return { kind, ...(at === "" ? {} : { at }) };
  if (kind === "manual") return { kind, ...given([["text", text.trim()], ["source", source.trim()]]) }; // prettier-ignore
  const sent = given(HEADERS.map(([name]) => [name, headers[name]?.trim() ?? ""]));
  const body = typed.trim();
  const isForm = FORM.test(sent["content-type"] ?? "") && !isJson(body);
  return {
    kind,
    ...(body === "" ? {} : { body: isForm ? body : JSON.parse(body) }),
    ...(Object.keys(sent).length === 0 ? {} : { headers: sent }),
  };
};

/** @returns the preview, or the error as text */
const read = async ({ pid, slug }: Previewed, typed: Typed): Promise<Preview | string> => {
  try {
    return await request("POST /v1/projects/:pid/triggers/:slug/preview", {
      params: { pid, slug },
      payload: fireOf(typed),
    });
  } catch (error) {
    if (error instanceof SyntaxError)
      return `The body is not valid JSON: ${error.message}. (If a delivery has this body, the prompt can use it as body.raw.)`;
    return error instanceof ApiError ? error.message : String(error);
  }
};

interface Field {
  readonly label: string;
  readonly children: (id: string) => ReactNode;
}

const Field = ({ label, children }: Field) => {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  );
};

interface Fields {
  readonly previewed: Previewed;
  readonly typed: Typed;
  readonly write: (part: Partial<Typed>) => void;
}

/** How many past deliveries are offered. All of them are in the runs. */
const PAST_SHOWN = 20;
/** A longer body makes the form slow. */
const BODY_MAX = 256 * 1024;

/** What a past delivery gives to the form, and what the reader has to know. */
const takeRequest = (stored: Stored | null): { readonly said: string; readonly imagined?: Imagined } => {
  if (stored === null)
    return {
      said: "This request is not stored. It was too large, or it was removed to make room for newer requests. Paste its body below.",
    };
  if (stored.encoding !== "utf8" || stored.body.length > BODY_MAX)
    return { said: "This body is too large for the form, or it is not text." };
  return {
    said: "The body and three headers are stored, but not the event's name. If the filter needs it, enter it under Headers.",
    imagined: imaginedRequest(stored),
  };
};

/** Offers the trigger's stored deliveries as bodies. Without any, the reader writes one. */
const Past = ({ previewed: { pid, slug }, typed, write }: Fields) => {
  const [said, setSaid] = useState("");
  const chosen = useRef("");
  const { data: fires = [] } = useQuery({
    queryKey: ["past deliveries", pid, slug],
    queryFn: async () => {
      const query = { slug, limit: PAST_SHOWN };
      const answer = await request("GET /v1/projects/:pid/fires", { params: { pid }, query });
      return answer.fires.filter(({ kind }) => kind === "webhook");
    },
    // A run may have come since the last look.
    refetchOnMount: "always",
  });
  const choose = async (id: string): Promise<void> => {
    chosen.current = id;
    if (id === "") return;
    const found = await request("GET /v1/projects/:pid/fires/:id", { params: { pid, id } }).catch(() => null);
    if (chosen.current !== id) return;
    const taken = takeRequest(found?.request ?? null);
    setSaid(taken.said);
    if (taken.imagined !== undefined)
      write({ body: taken.imagined.body, headers: { ...typed.headers, ...taken.imagined.headers } });
  };
  return (
    fires.length > 0 && (
      <Field label="Past delivery">
        {(id) => (
          <>
            <select id={id} onChange={({ target }) => void choose(target.value)}>
              <option value="">none, as written below</option>
              {fires.map((fire) => (
                <option key={fire.id} value={fire.id}>
                  {[moment(fire.received_at), fire.status, fire.delivery_id].filter(Boolean).join(" · ")}
                </option>
              ))}
            </select>
            <p className="quiet" role="status">
              {said}
            </p>
          </>
        )}
      </Field>
    )
  );
};

const WebhookFields = (fields: Fields) => {
  const { typed, write } = fields;
  return (
    <>
      <Past {...fields} />
      <Field label="Body (JSON)">
        {(id) => (
          <textarea
            id={id}
            rows={8}
            className="mono"
            spellCheck={false}
            value={typed.body}
            onChange={({ target }) => write({ body: target.value })}
          />
        )}
      </Field>
      <details open={Object.keys(fields.previewed.request.headers).length > 0}>
        <summary>Headers</summary>
        {HEADERS.map(([name, label]) => (
          <Field key={name} label={label}>
            {(id) => (
              <input
                id={id}
                type="text"
                autoComplete="off"
                value={typed.headers[name] ?? ""}
                onChange={({ target }) => write({ headers: { ...typed.headers, [name]: target.value } })}
              />
            )}
          </Field>
        ))}
      </details>
    </>
  );
};

const CronFields = ({ previewed: { upcoming }, typed, write }: Fields) => (
  <Field label="Due">
    {(id) => (
      <select id={id} value={typed.at} onChange={({ target }) => write({ at: target.value })}>
        {upcoming.map((at) => (
          <option key={at} value={at}>
            {moment(at)}
          </option>
        ))}
        <option value="">now</option>
      </select>
    )}
  </Field>
);

const ManualFields = ({ previewed: { uses }, typed, write }: Fields) => (
  <>
    {uses.includes("text") && (
      <Field label="Message (message.text)">
        {(id) => (
          <textarea
            id={id}
            rows={3}
            value={typed.text}
            onChange={({ target }) => write({ text: target.value })}
          />
        )}
      </Field>
    )}
    {uses.includes("source") && (
      <Field label="Source (message.source)">
        {(id) => (
          <input
            id={id}
            type="text"
            value={typed.source}
            onChange={({ target }) => write({ source: target.value })}
          />
        )}
      </Field>
    )}
    {uses.length === 0 && <p className="quiet">The prompt reads nothing of a run by hand.</p>}
  </>
);

const FIELDS = { webhook: WebhookFields, cron: CronFields, manual: ManualFields } as const;

const Result = ({ answer }: { readonly answer: Preview }) => (
  <div className="result" ref={(place) => place?.scrollIntoView({ block: "nearest" })}>
    <h3>Prompt</h3>
    {answer.prompt === "" ? (
      <p className="quiet">The prompt is empty.</p>
    ) : (
      <pre className="text" tabIndex={0} aria-label="Prompt">
        {answer.prompt}
      </pre>
    )}
    <details>
      <summary>Variables</summary>
      <pre className="text" tabIndex={0}>
        {prettyJson(JSON.stringify(answer.variables)) ?? JSON.stringify(answer.variables)}
      </pre>
    </details>
  </div>
);

const outcomeText = ({ outcome, prompt }: Preview): string =>
  OUTCOMES.get(outcome) ?? `${counted([...prompt].length, "character")}. No session was started.`;

const KindChoice = ({ previewed: { kinds }, typed, write }: Fields) => (
  <div className="choices" role="radiogroup" aria-label="Kind of run">
    {kinds.map((kind) => (
      <label key={kind}>
        <input
          type="radio"
          name="kind"
          value={kind}
          checked={kind === typed.kind}
          onChange={() => write({ kind })}
        />
        {kind}
      </label>
    ))}
  </div>
);

interface PreviewForm {
  readonly previewed: Previewed;
  readonly close: () => void;
}

const PreviewForm = ({ previewed, close }: PreviewForm) => {
  const [typed, setTyped] = useState<Typed>({
    ...previewed.request,
    kind: previewed.kinds[0] ?? "manual",
    at: previewed.upcoming[0] ?? "",
    text: "",
    source: "",
  });
  const [answer, setAnswer] = useState<Preview | string | null>(null);
  const turn = useRef(0);
  const render = async (): Promise<void> => {
    turn.current += 1;
    const own = turn.current;
    const next = await read(previewed, typed);
    // A later press has made this answer obsolete.
    if (own === turn.current) setAnswer(next);
  };
  const fields = {
    previewed,
    typed,
    write: (part: Partial<Typed>) => setTyped((before) => ({ ...before, ...part })),
  };
  const KindFields = FIELDS[typed.kind];
  const shown = typeof answer === "string" ? null : answer;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void render();
      }}
    >
      <h2 id="dialog-title">{`Preview "${previewed.title}"`}</h2>
      <p className="quiet">Shows the prompt that the trigger would render. No session starts.</p>
      <KindChoice {...fields} />
      <fieldset data-kind={typed.kind}>
        <KindFields {...fields} />
      </fieldset>
      <p className="refusal text" role="alert">
        {typeof answer === "string" && <Prose text={answer} />}
      </p>
      <p className="actions">
        <button type="button" className="decline" onClick={close}>
          Close
        </button>
        <button type="submit" className="primary">
          Preview
        </button>
      </p>
      <p className="quiet" role="status">
        {shown !== null && outcomeText(shown)}
      </p>
      {shown !== null && <Result answer={shown} />}
    </form>
  );
};

export const openPreview = (previewed: Previewed): void => {
  const place = h("div", {});
  const root = createRoot(place);
  const form = (
    <QueryClientProvider client={queries}>
      <PreviewForm previewed={previewed} close={() => dialog.close()} />
    </QueryClientProvider>
  );
  // The dialog gives the focus to a field when it opens.
  flushSync(() => root.render(form));
  const dialog = openDialog(place, { wide: true });
  onClose(dialog, () => root.unmount());
};
