/** What several pages show of a build. */
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { duration, elapsed, moment, shortId } from "../elements/format.ts";
import { RoleAct } from "../ui/act.tsx";
import { Badge, Callout, Prose, Time } from "../ui/parts.tsx";
import { ADVICE, begin, type Build, buildLink, cancel, isOver, tookOf } from "./build.ts";
import type { Following } from "./log.ts";

/** How much of a failed step's output is shown outside of the log. */
const TAIL_LINES = 20;
const TAIL_CHARS = 4096;

export const BuildLink = ({ pid, id }: { readonly pid: string; readonly id: string }) => (
  <a href={buildLink(pid, id)} title={id}>{`build ${shortId(id)}`}</a>
);

/** Each name with its value. */
export const assignments = (given: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(given).map(([name, value]) => `${name}=${value}`);

type Source = Pick<Build, "context" | "target" | "args" | "secrets" | "devcontainer" | "base" | "commit">;
export type Rows = readonly (readonly [name: string, value: ReactNode])[];

const asCode = (text: string): ReactNode => <code>{text}</code>;

/** Where a build comes from. @param path of the Dockerfile */
export const sourceRows = (path: string, source: Source): Rows => {
  const { context, target, args, secrets, devcontainer, base, commit } = source;
  const given = assignments(args);
  const at = <code title={commit}>{commit.slice(0, 10)}</code>;
  const named: Rows = devcontainer === null ? [] : [["File", asCode(devcontainer)]];
  if (base !== null) return [...named, ["Base image", asCode(base)], ["Commit", at]];
  return [
    ...named,
    ["Dockerfile", asCode(path)],
    ["Context", context === "" ? "the whole repository" : asCode(context)],
    ["Stage", target === null ? "the last one" : asCode(target)],
    ["Arguments", given.length > 0 && asCode(given.join(" "))],
    ["Secrets", secrets.length > 0 && asCode(secrets.join(" "))],
    ["Commit", at],
  ];
};

const DOING: Readonly<Record<string, string>> = {
  queued: "waits for its place on the node",
  resolving: "reads the files of the commit",
  exporting: "copies the files of the image",
};

/** Without the time. */
const Doing = ({ build: { status, step } }: { readonly build: Build }) =>
  status === "building" && step !== null ? (
    <>
      {`step ${step.step}, line ${step.line}: `}
      <code>{step.instruction}</code>
    </>
  ) : (
    <>{DOING[status]}</>
  );

export const BuildState = ({ build }: { readonly build: Build }) => {
  const { status, begun_at: begun, created_at: created, ended_at: ended } = build;
  const since = begun ?? created;
  return (
    <p className="build-state">
      <span role="status">
        <Badge status={status} /> <Doing build={build} />
      </span>
      {/* Outside of the status, so that it is not announced every second. */}
      <span className="quiet">
        {isOver(build) ? (
          <>
            <Time at={ended} />
            {begun !== null && `, after ${duration(tookOf(build))}`}
          </>
        ) : (
          <time dateTime={since} title={moment(since)}>{` · ${elapsed(tookOf(build))} so far`}</time>
        )}
      </span>
    </p>
  );
};

export const Unread = ({ following }: { readonly following: Following | null }) =>
  following !== null &&
  following.problem !== null && (
    <p className="refusal" role="alert">
      <Prose text={following.problem} />
    </p>
  );

const endOf = (tail: string): string =>
  tail.trimEnd().split("\n").slice(-TAIL_LINES).join("\n").slice(-TAIL_CHARS);

/** @param props `hasLog`: the whole log is shown beside it */
export const BuildFailure = ({
  build,
  hasLog = false,
}: {
  readonly build: Build;
  readonly hasLog?: boolean;
}) => {
  const { status, step, failure } = build;
  if (status !== "failed" || failure === null) return null;
  const tail = "tail" in failure && !hasLog ? endOf(failure.tail) : "";
  const advice = ADVICE[failure.code];
  return (
    <Callout tone="bad">
      <p>
        <strong>
          <Prose text={failure.message} />
        </strong>
      </p>
      {step !== null && "line" in failure && step.line === failure.line && (
        <p>
          {`Line ${step.line}: `}
          <code>{step.instruction}</code>
        </p>
      )}
      {tail !== "" && (
        <>
          <p>The end of its output:</p>
          <pre className="logs" tabIndex={0} role="region" aria-label="The end of the output">
            {tail}
          </pre>
        </>
      )}
      {advice !== undefined && (
        <p>
          <Prose text={advice} />
        </p>
      )}
    </Callout>
  );
};

/** @param props `leads`: a link leads to the log */
export const BuildActs = ({ build, leads = false }: { readonly build: Build; readonly leads?: boolean }) => (
  <p className="actions">
    {isOver(build) ? (
      <RoleAct
        entry="build-environment"
        label="Build again"
        className=""
        does={() => begin(build.project_id)}
      />
    ) : (
      <RoleAct entry="cancel-build" label="Cancel" className="" does={() => cancel(build)} />
    )}
    {leads && (
      <a className="button" href={buildLink(build.project_id, build.id)}>
        Show the log
      </a>
    )}
  </p>
);

interface Sandbox {
  readonly pid: string;
  readonly sandbox: Answer<"GET /v1/projects/:pid/sessions/:sid/sandbox">;
  /** The build for which the sandbox waits. */
  readonly awaited: Build | null;
}

/** On what a session's sandbox runs. Null: nobody knows yet. */
export const sandboxEnvironment = ({ pid, sandbox, awaited }: Sandbox): ReactNode => {
  const { environment, image, boot_started_at: begun } = sandbox;
  if (environment !== null) {
    const link = <BuildLink pid={pid} id={environment.build_id} />;
    if (awaited !== null) return <span>waits for {link}</span>;
    return (
      <span>
        {link}
        {environment.stale && ", stale: the newer image was not ready when the sandbox started"}
      </span>
    );
  }
  if (begun === null) return null;
  return image === null ? (
    "The machine's own programs"
  ) : (
    <span>
      Image <code>{image}</code>
    </span>
  );
};

/** For what the sandbox of a session waits. */
export const AwaitedNote = ({ awaited }: { readonly awaited: Build | null }) =>
  awaited !== null && (
    <Callout>
      The sandbox waits for the first build of the project's environment.{" "}
      <a href={buildLink(awaited.project_id, awaited.id)}>Show its log</a>
    </Callout>
  );
