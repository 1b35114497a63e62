/** A single run: what became of it, its prompt and its request. */
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { moment } from "../elements/format.ts";
import { fireLink, firesLink, projectLink } from "../elements/parts.ts";
import { prettyJson } from "../elements/text.ts";
import { headOf } from "../projects/head.tsx";
import { FrameAct, RoleAct } from "../ui/act.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Badge, Callout, Facts, IdEnd, Prose, Time } from "../ui/parts.tsx";
import { imaginedRequest, openPreview } from "./preview.tsx";
import {
  failureReason,
  isReasonCode,
  resultWord,
  runInstant,
  runReason,
  runResult,
  runStart,
} from "./words.ts";

type Detail = Answer<"GET /v1/projects/:pid/fires/:id">;
type Stored = NonNullable<Detail["request"]>;

interface Known {
  readonly pid: string;
  readonly run: Detail;
}

/** How much a browser shows at once without effort, in UTF-16 units. Requests may be far larger. */
const BODY_SHOWN = 256 * 1024;

const RunLink = ({ pid, id }: { readonly pid: string; readonly id: string }) => (
  <a href={fireLink(pid, id)}>
    <IdEnd id={id} />
  </a>
);

const REQUEST = "Request for a session";

const nameOf = ({ trigger_slug: slug }: Pick<Detail, "trigger_slug">): string => slug ?? REQUEST;

/** Whether its request fits the form of a preview. */
const fitsPreview = ({ kind, request: stored }: Detail): boolean =>
  kind === "webhook" && stored !== null && stored.encoding === "utf8" && stored.body.length <= BODY_SHOWN;

/** Filled with the stored request. The manifest may have changed since. */
const previewRun = async (pid: string, { trigger_slug: slug, request: stored }: Detail): Promise<void> => {
  if (stored === null || slug === null) return;
  openPreview({
    pid,
    slug,
    title: slug,
    kinds: ["webhook"],
    upcoming: [],
    uses: [],
    request: imaginedRequest(stored),
  });
};

const Actions = ({ pid, run }: Known) => {
  const { id, kind } = run;
  const input = { project: pid, fire: id, title: nameOf(run), kind };
  // A replay of a cron or manual run needs no stored request. A webhook's prompt is rendered from it, a duplicate's from the first one's.
  const isLost = run.kind === "webhook" && run.request === null && run.duplicate_of === null;
  return (
    <p className="actions">
      {kind !== "session" && (
        <FrameAct name="replay" input={input} prevented={isLost ? "not-stored" : undefined}>
          Replay
        </FrameAct>
      )}
      {run.status === "queued" && (
        <FrameAct name="cancel-fire" input={input}>
          Cancel
        </FrameAct>
      )}
      {fitsPreview(run) && (
        <RoleAct
          entry="preview"
          className=""
          label="Preview"
          about="the prompt that the trigger renders today for this request"
          does={() => previewRun(pid, run)}
        />
      )}
      {isLost && (
        <span id="not-stored" className="quiet">
          This run cannot be replayed because its request is not stored.
        </span>
      )}
    </p>
  );
};

const TONES: Readonly<Record<string, "bad">> = { failed: "bad", expired: "bad" };

const Why = ({ status, reason }: { readonly status: Detail["status"]; readonly reason: string }) =>
  status === "queued" ? (
    <Callout tone="warn">
      Waits for a free session. <Prose text={runReason(reason)} /> <a href="#/queue">Show the queue</a>
    </Callout>
  ) : (
    <Callout tone={TONES[status]}>
      <p className="text">
        <Prose text={runReason(reason)} />
      </p>
    </Callout>
  );

const Details = ({ pid, run }: Known) => (
  <Facts
    rows={[
      [
        "Trigger",
        run.trigger_slug !== null && (
          <span>
            <a href={projectLink(pid, "/triggers")}>{run.trigger_slug}</a>
            {" · "}
            <a href={firesLink(pid, run.trigger_slug)}>its runs</a>
          </span>
        ),
      ],
      ["Started", runStart(run)],
      ["Place in the queue", run.position],
      ["Due", run.scheduled_for !== null && moment(run.scheduled_for)],
      ["Received", moment(run.received_at)],
      [
        "Session",
        run.session_id !== null && (
          <a href={projectLink(pid, `/sessions/${run.session_id}`)}>{run.session_name ?? "its session"}</a>
        ),
      ],
      [
        "Failed with",
        run.outcome?.state === "failed" && run.outcome.code !== null && (
          <>
            {failureReason(run.outcome.code)} <code>{run.outcome.code}</code>
          </>
        ),
      ],
      ["Attempts", run.attempts],
      ["Delivery", run.delivery_id !== null && <code>{run.delivery_id}</code>],
      ["Verified with", run.verified_with === "previous" && "the previous value of the secret"],
      ["Replay of", run.replay_of !== null && <RunLink pid={pid} id={run.replay_of} />],
      ["Duplicate of", run.duplicate_of !== null && <RunLink pid={pid} id={run.duplicate_of} />],
      // The text is above; this is the code to search for.
      ["Reason", run.reason !== null && isReasonCode(run.reason) && <code>{run.reason}</code>],
    ]}
  />
);

const Quiet = ({ children }: { readonly children: ReactNode }) => <p className="quiet">{children}</p>;

const Text = ({ label, text }: { readonly label: string; readonly text: string }) => (
  <pre className="text" tabIndex={0} aria-label={label}>
    {text}
  </pre>
);

const Prompt = ({ prompt }: Pick<Detail, "prompt">) => {
  if (prompt === null) return <Quiet>No prompt is stored for this run.</Quiet>;
  return prompt === "" ? <Quiet>The prompt is empty.</Quiet> : <Text label="Prompt" text={prompt} />;
};

const bodyText = ({ body, encoding }: Stored): string => {
  if (body.length > BODY_SHOWN) return body.slice(0, BODY_SHOWN);
  return (encoding === "utf8" ? prettyJson(body) : null) ?? body;
};

const Request = ({ stored }: { readonly stored: Stored }) => {
  const { headers, body, encoding } = stored;
  const headerRows = [
    ["Content-Type", headers?.content_type],
    ["User-Agent", headers?.user_agent],
    ["X-Forwarded-For", headers?.forwarded_for],
  ] as const;
  return (
    <div className="request">
      <Facts
        rows={headerRows.map(
          ([name, value]) => [name, value !== null && value !== undefined && <code>{value}</code>] as const,
        )}
      />
      {encoding === "base64" && <Quiet>The body is not text. It is shown in base64.</Quiet>}
      {body === "" ? <Quiet>The body is empty.</Quiet> : <Text label="Body" text={bodyText(stored)} />}
      {body.length > BODY_SHOWN && (
        <Quiet>{`${body.length - BODY_SHOWN} more characters are not shown.`}</Quiet>
      )}
    </div>
  );
};

interface Shown {
  readonly project: Answer<"GET /v1/projects/:pid">;
  readonly run: Detail;
}

const Run = ({ data: { project, run } }: { readonly data: Shown }) => {
  const result = runResult(run);
  return (
    <>
      <header className="head">
        <h2>
          {nameOf(run)} <Badge status={result} word={resultWord(result)} />
        </h2>
        <p className="quiet">
          <IdEnd id={run.id} /> · <Time at={runInstant(run)} />
        </p>
        <Actions pid={project.id} run={run} />
      </header>
      {run.reason !== null && <Why status={run.status} reason={run.reason} />}
      <section aria-label="Details">
        <h3>Details</h3>
        <Details pid={project.id} run={run} />
      </section>
      <section aria-label="Prompt of the run">
        <h3>Prompt</h3>
        <Prompt prompt={run.prompt} />
      </section>
      {(run.request !== null || (run.kind !== "cron" && run.kind !== "session")) && (
        <section aria-label="Request">
          <h3>Request</h3>
          {run.request === null ? (
            <Quiet>
              The request is not stored. It was too large, or it was removed to make room for newer requests.
            </Quiet>
          ) : (
            <Request stored={run.request} />
          )}
        </section>
      )}
    </>
  );
};

export const run = framedPage<Shown>({
  load: async ([pid = "", id = ""]) => {
    const [project, found] = await Promise.all([
      request("GET /v1/projects/:pid", { params: { pid } }),
      request("GET /v1/projects/:pid/fires/:id", { params: { pid, id } }),
    ]);
    return { project, run: found };
  },
  title: ({ run: { trigger_slug: slug, ...found } }) =>
    `${slug === null ? REQUEST : `Run of ${slug}`} · ${resultWord(runResult(found))}`,
  head: headOf("/fires"),
  Body: Run,
});
