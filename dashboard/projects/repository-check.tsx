/** Checks of a repository at another server: what has been tried, what it showed, and what to do about a failure. */
import { useEffect, useState } from "react";
import type { Answer, Request } from "../../src/cli/contract.ts";
import { ApiError } from "../api/api.ts";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { projectLink, refusedLink } from "../elements/parts.ts";
import { RoleAct } from "../ui/act.tsx";
import { Prose } from "../ui/parts.tsx";
import { Store, useStore } from "../ui/store.ts";

type RepositoryCheck = Answer<"POST /v1/repository-checks">;
type Step = RepositoryCheck["steps"][number];

/** What a form names so far. */
export type CheckWish = NonNullable<Request<"POST /v1/repository-checks">["payload"]>;

/** A slow server answers late, and a check asks it several times. */
const CHECK_TIMEOUT_MS = 90_000;

/** Shows the check of the newest wish. */
export class Checking extends Store {
  /** The last one. */
  check: RepositoryCheck | null = null;
  /** Why no check could be made. */
  problem: string | null = null;
  isRunning = false;
  #turn = 0;
  #last: (() => Promise<RepositoryCheck>) | null = null;
  /** Whether the same wish is checked once more after the present check. */
  #isAwaited = false;

  readonly ask = async (wish: () => Promise<RepositoryCheck>): Promise<void> => {
    this.#last = wish;
    this.#isAwaited = false;
    this.#turn += 1;
    const turn = this.#turn;
    this.isRunning = true;
    this.changed();
    const found = await wish().then(
      (check) => ({ check, problem: null }),
      (error: unknown) => ({ check: null, problem: error instanceof Error ? error.message : String(error) }),
    );
    if (turn !== this.#turn) return;
    const isAwaited = this.#isAwaited;
    Object.assign(this, found, { isRunning: false });
    this.changed();
    if (isAwaited) this.again();
  };

  /** A check that is under way ends first: else one whose reader asks often would never be shown. */
  readonly again = (): void => {
    if (this.isRunning) this.#isAwaited = true;
    else if (this.#last !== null) void this.ask(this.#last);
  };
}

/** The refusal of a field in the form's words: the service names it as programs do. */
const inWordsOf =
  (form: HTMLFormElement) =>
  (error: unknown): never => {
    const issue = error instanceof ApiError ? error.details?.issues?.[0] : undefined;
    if (issue === undefined) throw error;
    const field = form.elements.namedItem(issue.path);
    const label = field instanceof HTMLInputElement ? field.labels?.[0]?.textContent : undefined;
    throw new Error(label ? `${label}: ${issue.message}` : issue.message);
  };

/** Checks what a form names. The names of its fields are those of the API. */
export const checkForm = (checking: Checking, form: HTMLFormElement, payload: CheckWish): Promise<void> =>
  checking.ask(() =>
    request("POST /v1/repository-checks", { payload }, CHECK_TIMEOUT_MS).catch(inWordsOf(form)),
  );

/** Checks a project's connection once when its page is shown, and again when asked. */
export const useConnection = ({ id: pid, repository: { kind } }: Project): Checking => {
  const [checking] = useState(() => new Checking());
  useEffect(() => {
    if (kind === "hosted") return;
    void checking.ask(() =>
      request("POST /v1/projects/:pid/repository/check", { params: { pid } }, CHECK_TIMEOUT_MS),
    );
  }, [checking, pid, kind]);
  return checking;
};

const NAMES: Readonly<Record<string, string>> = {
  host: "Server",
  credential: "Credential",
  repository: "Repository",
  default_branch: "Default branch",
  push: "Push",
  pull_requests: "Pull requests",
  webhook: "Webhooks",
};
/** Those that every repository has. */
const ALWAYS = ["host", "credential", "repository", "default_branch", "push"];
const OUTCOMES: Readonly<Record<string, string>> = {
  passed: "passed",
  failed: "failed",
  unknown: "not known yet",
  later: "not tried",
};

interface ShownStep extends Pick<Step, "message" | "advice"> {
  readonly step: string;
  readonly outcome: Step["outcome"] | "later";
}

/** Those that were tried, and the names of those that a failure left out. */
const stepsOf = ({ steps }: RepositoryCheck): readonly ShownStep[] => {
  const hasFailed = steps.some(({ outcome }) => outcome === "failed");
  const missing = ALWAYS.filter((name) => hasFailed && !steps.some(({ step }) => step === name));
  return [
    ...steps,
    ...missing.map((step) => ({ step, outcome: "later", message: "", advice: null }) as const),
  ];
};

const WebhookLink = ({ pid, outcome }: { readonly pid: string; readonly outcome: string }) => (
  <p>
    {outcome === "failed" ? (
      <a href={refusedLink(pid)}>Show the refused deliveries</a>
    ) : (
      <a href={projectLink(pid, "/triggers")}>Show the triggers</a>
    )}
  </p>
);

const StepRow = ({
  of: { step, outcome, message, advice },
  pid,
}: {
  readonly of: ShownStep;
  readonly pid: string | undefined;
}) => (
  <li className="check-step" data-outcome={outcome} data-key={step}>
    <strong>
      {NAMES[step] ?? step}
      <span className="unseen">{`: ${OUTCOMES[outcome] ?? outcome}`}</span>
    </strong>
    {message !== "" && (
      <p className="quiet">
        <Prose text={message} />
      </p>
    )}
    {advice !== null && (
      <p>
        <Prose text={advice} />
      </p>
    )}
    {step === "webhook" && outcome !== "passed" && pid !== undefined && (
      <WebhookLink pid={pid} outcome={outcome} />
    )}
  </li>
);

const summaryOf = ({ check, isRunning }: Checking, before: string): string => {
  if (isRunning) return "Checking…";
  if (check === null) return before;
  // The service tries no path on its own machine, so that nothing is known yet.
  if (check.steps.length === 0)
    return "The service reads this repository only when you create the project. It must have a branch.";
  return check.usable
    ? "The service can work with this repository."
    : "The service cannot work with this repository yet.";
};

interface Shown {
  readonly checking: Checking;
  readonly heading: "h2" | "h3" | "h4";
  /** Shown until the first check. */
  readonly before?: string;
  /** The project's id, once there is one. */
  readonly pid?: string;
}

/** What a check showed, and a button that checks again. */
export const CheckView = ({
  checking,
  heading: Heading,
  before = "The connection is checked.",
  pid,
}: Shown) => {
  useStore(checking);
  const { check, problem, isRunning } = checking;
  return (
    <section className="lines" aria-live="polite" aria-busy={isRunning ? true : undefined}>
      <Heading>Connection</Heading>
      <p className="quiet">
        {!isRunning && problem !== null ? (
          <span className="refusal">
            <Prose text={problem} />
          </span>
        ) : (
          summaryOf(checking, before)
        )}
      </p>
      {check !== null && (
        <ol className="checks">
          {stepsOf(check).map((step) => (
            <StepRow key={step.step} of={step} pid={pid} />
          ))}
        </ol>
      )}
      {((check !== null && check.steps.length > 0) || problem !== null) && (
        <p className="actions">
          <RoleAct entry="check-again" label="Check again" className="" does={async () => checking.again()} />
        </p>
      )}
    </section>
  );
};
