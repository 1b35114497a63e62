/** The tab of the details: what is saved, the session's facts, its life, and its change requests. */
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Answer } from "../../../src/cli/contract.ts";
import { countedQuery } from "../../api/counted.ts";
import { ChangeRows } from "../../change-requests/list.tsx";
import { sandboxEnvironment } from "../../environments/parts.tsx";
import { counted, dollars, duration, grouped, moment } from "../../elements/format.ts";
import { projectLink } from "../../elements/parts.ts";
import { ACTIVITY_WORDS, stopWords } from "../../../src/domain/session/activity-words.ts";
import { agentWords } from "../../projects/project.ts";
import { SavedPanel } from "../../saved/panel.tsx";
import { Badge, Facts, IdEnd, Time } from "../../ui/parts.tsx";
import { begunFrom } from "../../../src/domain/session/begun.ts";
import { BegunFrom } from "../begun-from.tsx";
import { BootSteps } from "../boot.tsx";
import type { Following } from "../following.ts";
import { Spending } from "./spending.tsx";
import type { Sandbox, Session, SessionData } from "../session.ts";

type Step = readonly [label: string, at: string | null | undefined, detail?: string | undefined];

const stepsOf = (session: Session, sandbox: Sandbox | null) => {
  const { status, failure } = session;
  const all: readonly Step[] = [
    ["Accepted", session.created_at],
    ["Sandbox requested", sandbox?.created_at, sandbox?.provider],
    ["Sandbox live", sandbox?.active_at],
    ["Running", session.running_at],
    ["Sandbox ended", sandbox?.ended_at],
    ["Asleep", status === "stopped" ? session.stopped_at : null, stopWords(session.stop_reason ?? "")],
    ["Failed", status === "failed" ? failure?.at : null, failure?.code],
  ];
  return all
    .flatMap(([label, at, detail = ""]) => (at ? [{ label, at, detail }] : []))
    .toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
};

const Timeline = ({ session, sandbox }: Pick<SessionData, "session" | "sandbox">) => {
  const steps = stepsOf(session, sandbox);
  const since = (index: number): number =>
    Date.parse(steps[index]?.at ?? "") - Date.parse(steps[index - 1]?.at ?? "");
  return (
    <ol className="timeline">
      {steps.map(({ label, at, detail }, index) => (
        <li key={label}>
          <span className="step">
            {label}
            {detail !== "" && <span className="quiet">{` ${detail}`}</span>}
          </span>
          <time dateTime={at} title={moment(at)}>
            {index === 0 ? moment(at) : `+${duration(since(index))}`}
          </time>
        </li>
      ))}
      {session.status === "provisioning" && <li className="pending">Starting…</li>}
    </ol>
  );
};

type Counted = Answer<"GET /v1/projects/:pid/sessions/:sid/model-usage">["models"][number];

/** What passed the service to a provider of the account. */
const countedWords = ({
  model,
  calls,
  estimated_tokens: estimated,
  cost_usd: cost,
  ...tokens
}: Counted): string =>
  `${model}: ${grouped(tokens.input_tokens)} tokens in, ${grouped(tokens.output_tokens)} out, ${counted(calls, "call")}${estimated > 0 ? `, about ${grouped(estimated)} tokens more of calls that broke off` : ""}${cost > 0 ? `, ${dollars(cost)}` : ""}`;

const usageWords = ({
  input_tokens: input,
  output_tokens: output,
  cost_usd: cost,
}: Session["usage"]): string =>
  `${grouped(input)} tokens in, ${grouped(output)} out${cost > 0 ? `, ${dollars(cost)}` : ""}`;

const Fact = ({ children }: { readonly children: ReactNode }) => <span>{children}</span>;

type FactRow = readonly [name: string, value: ReactNode];

/** Who or what began it. */
const originOf = (session: Session): readonly FactRow[] => {
  const { project_id: project, trigger_slug: trigger, fire_id: fire, parent_session_id: parent } = session;
  return [
    ["Started", <Time key="started" at={session.created_at} />],
    ["Person", session.person?.name],
    ["Trigger", trigger !== null && <a href={projectLink(project, "/triggers")}>{trigger}</a>],
    [
      "Triggered by",
      fire !== null && trigger !== null && (
        <a href={projectLink(project, `/fires/${fire}`)}>
          run <IdEnd id={fire} />
        </a>
      ),
    ],
    [
      "Started by",
      parent !== null && (
        <a href={projectLink(project, `/sessions/${parent}`)}>
          agent of <IdEnd id={parent} />
        </a>
      ),
    ],
  ];
};

/** Where the session's work begins: another session's turn, or a branch, with the commit. */
const Base = ({ session }: { readonly session: Session }) => {
  const { base_ref: ref, base_commit: commit } = session;
  const isBegun = begunFrom(session) !== null;
  return (
    <>
      {isBegun ? <BegunFrom session={session} /> : <code>{commit === ref ? commit.slice(0, 10) : ref}</code>}
      {commit !== null && (commit !== ref || isBegun) && (
        <>
          {" at "}
          <code>{commit.slice(0, 10)}</code>
        </>
      )}
    </>
  );
};

const State = ({ session: { project_id: project, id, activity } }: Pick<SessionData, "session">) => (
  <span>
    {ACTIVITY_WORDS[activity].word}{" "}
    <a href={projectLink(project, `/sessions/${id}/state`)}>Why this state?</a>
  </span>
);

const SessionFacts = ({ session, sandbox, awaited, own }: SessionData) => {
  const { project_id: project, last_turn: last } = session;
  const environment = sandbox && sandboxEnvironment({ pid: project, sandbox, awaited });
  const { data: models = [] } = useQuery(countedQuery(session));
  return (
    <Facts
      rows={[
        ["State", <State key="state" session={session} />],
        ["Session", <code key="id">{session.id}</code>],
        ["Branch", <code key="branch">{session.branch_name}</code>],
        [
          "Created from",
          <Fact key="base">
            <Base session={session} />
          </Fact>,
        ],
        ["Agent", agentWords(session.agent_name)],
        ["Model", session.agent_model],
        [
          "Used, as the agent says",
          // The service's count wins.
          models.length === 0 && session.usage.input_tokens > 0 && usageWords(session.usage),
        ],
        [
          "Counted by the service",
          models.length > 0 &&
            `${models.map(countedWords).join("; ")}. These are all calls of models, also those for titles and those that the agent does not report.`,
        ],
        [
          "Not counted",
          own.subscription &&
            "The agent uses the own subscription of the session's person. Only what the agent says is known.",
        ],
        ...originOf(session),
        [
          "Sandbox",
          sandbox && (
            <Fact>
              {sandbox.provider} <Badge status={sandbox.status} />
            </Fact>
          ),
        ],
        ["Node", sandbox?.node_id],
        [
          "Last turn",
          last && (
            <Fact>
              <Badge status={last.state} /> <Time at={last.at} />
            </Fact>
          ),
        ],
        ["Environment", environment],
        ["Sandbox failure", sandbox?.failure && `${sandbox.failure.code}: ${sandbox.failure.message}`],
      ]}
    />
  );
};

interface DetailsParts {
  readonly data: SessionData;
  readonly following: Following;
}

export const Details = ({ data, following }: DetailsParts) => {
  const { session, sandbox, changes } = data;
  // Whoever comes to raise the limit finds it first.
  const isStopped = session.last_turn?.error?.code === "spend_limit";
  const spending = <Spending session={session} />;
  return (
    <>
      {isStopped && spending}
      <SavedPanel session={session} saves={following.saves} />
      <section>
        <h2>Details</h2>
        <SessionFacts {...data} />
      </section>
      {!isStopped && spending}
      <section>
        <h2>Timeline</h2>
        <Timeline session={session} sandbox={sandbox} />
        <BootSteps session={session} sandbox={sandbox} log={following.log.now()} />
      </section>
      {changes.length > 0 && (
        <section>
          <h2>Change requests</h2>
          <ChangeRows changes={changes} />
        </section>
      )}
    </>
  );
};
