/** The first steps of a project: its code, a model, a session, and the merge of the agent's work. */
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { projectLink, sessionWord } from "../elements/parts.ts";
import { Form, SelectField, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Badge, CopyLine } from "../ui/parts.tsx";
import { GitSignIn, TryKey } from "./acts.tsx";
import { headOf } from "./head.tsx";
import { useKeySaving } from "./use-key-saving.ts";
import { isArchived, sessionName } from "./project.ts";
import { type Checking, CheckView, useConnection } from "./repository-check.tsx";
import { PROMPT, startIn } from "./start.ts";

type Found = Answer<"GET /v1/projects/:pid/setup">;
type Session = Answer<"GET /v1/projects/:pid/sessions">["sessions"][number];
type Change = Answer<"GET /v1/projects/:pid/change-requests">["change_requests"][number];

interface Shown {
  readonly project: Project;
  /** Null: the repository cannot be read now. */
  readonly found: Found | null;
  /** The newest. */
  readonly session: Session | null;
  /** The newest. */
  readonly change: Change | null;
}

interface StepParts {
  readonly title: string;
  readonly state: "done" | "now" | "later";
  readonly children: ReactNode;
}

const Step = ({ title, state, children }: StepParts) => (
  <li className="setup-step" data-state={state}>
    <h3>
      {title}
      {state === "done" && <span className="unseen"> (done)</span>}
    </h3>
    <div className="setup-content">{children}</div>
  </li>
);

interface Connected {
  readonly project: Project;
  readonly checking: Checking;
}

const Connection = ({ project: { id, repository }, checking }: Connected) =>
  repository.kind !== "hosted" && <CheckView checking={checking} heading="h4" pid={id} />;

const Unreadable = ({ project, checking }: Connected) => (
  <Step title="Reach the repository" state="now">
    <p>The repository cannot be read now. This page tries again by itself.</p>
    <Connection project={project} checking={checking} />
    {project.repository.kind !== "hosted" && (
      <p>
        <a href={projectLink(project.id, "/settings")}>Replace the credential in the settings</a>
      </p>
    )}
  </Step>
);

const Push = ({ url, branch }: Found["repository"]) => (
  <>
    <p>The repository is empty. Push your code from a clone that you have:</p>
    <CopyLine text={`git push --force ${url} HEAD:${branch}`} />
    <GitSignIn />
    <p className="quiet">
      You can also leave the repository empty and let the first session write the code. This page notices a
      push by itself.
    </p>
  </>
);

const BY = {
  gateway: "The operator's gateway provides it.",
  person: "A model provider of your own provides it. The key stays outside of sandboxes.",
  project: "A model provider of the project provides it. The key stays outside of sandboxes.",
  account: "A model provider of the account provides it. The key stays outside of sandboxes.",
  secret: "Its key is a secret of the project.",
};

const ModelText = ({ model: { source, model } }: Pick<Found, "model">) => {
  if (source === "repository") return <p>The repository's configuration names the model.</p>;
  if (model === null) return <p>The agent runtime of this installation needs no model.</p>;
  return (
    <p>
      Sessions use <code>{model}</code>
      {`. ${BY[source ?? "secret"]}`}
    </p>
  );
};

interface About {
  readonly project: Project;
  readonly found: Found;
}

const KnownModel = ({ project, found }: About) => {
  const { model, providers } = found;
  const provider = providers.find(({ id }) => model.model?.startsWith(`${id}/`));
  return (
    <>
      <ModelText model={model} />
      {model.source === "secret" && provider !== undefined && (
        <p>
          <TryKey pid={project.id} names={provider.secrets} />
        </p>
      )}
    </>
  );
};

const ModelForm = ({ project: { id: pid }, found: { providers } }: About) => {
  const { other, save } = useKeySaving();
  return (
    <>
      <p>
        The agent needs a language model. An owner of the account can add a provider of models for all
        projects. Its key stays outside of sandboxes, and its models can be chosen.
      </p>
      <p className="actions">
        <a className="button" href={`#/models?for=${pid}`}>
          Add a provider of models
        </a>
      </p>
      <p className="quiet">
        Or save a key for this project alone. It becomes a secret of the project, which every session's agent
        gets.
      </p>
      <Form
        entry="set-model-key"
        submit="Try and save the key"
        sending="Trying…"
        other={other}
        onSend={async ({ secret = "", value = "" }, isUntried) => {
          await save([pid, secret], { value }, isUntried);
        }}
      >
        <SelectField
          name="secret"
          label="Provider"
          options={providers.map(({ id, secrets, model }) => [
            secrets[0] ?? "",
            `${id} (${model.slice(id.length + 1)})`,
          ])}
        />
        <TextField name="value" label="Key" type="password" required />
      </Form>
    </>
  );
};

const FIRST_PROMPT = "Read the repository and describe it in README.md. Commit and push.";

const FirstSession = ({ project, canStart }: { readonly project: Project; readonly canStart: boolean }) => {
  if (!canStart)
    return (
      <p className="quiet">
        {isArchived(project)
          ? `The project is ${project.status}, and starts no sessions.`
          : "A session needs a model first."}
      </p>
    );
  const start = async (typed: Readonly<Record<string, string>>): Promise<void> => {
    location.hash = (await startIn(project.id, typed, [])) ?? "#/";
  };
  return (
    <Form entry="start-first-session" submit="Start session" sending="Starting…" onSend={start}>
      <TextField {...PROMPT} required initial={FIRST_PROMPT} />
    </Form>
  );
};

const Merge = ({ project, session, change }: Shown) =>
  change === null ? (
    <p className="quiet">
      {session === null
        ? "The agent works on a branch of its own. A change request proposes it to the default branch."
        : "When the agent has pushed its commits, open a change request on the session's page, and merge it."}
    </p>
  ) : (
    <>
      <p>
        <a href={projectLink(project.id, `/change-requests/${change.number}`)}>
          {`#${change.number} ${change.title}`}
        </a>{" "}
        <Badge status={change.status} />
      </p>
      {change.status === "open" && (
        <p className="quiet">Open it, look at what the agent changed, and merge it.</p>
      )}
    </>
  );

type Steps = Shown & About & Connected;

const Steps = (page: Steps) => {
  const { project, found, session, change, checking } = page;
  const { repository, model } = found;
  const hasModel = !model.required || model.source !== null;
  const canStart = hasModel && !isArchived(project);
  return (
    <>
      <Step title="Push your code" state={repository.empty ? "now" : "done"}>
        {repository.empty ? (
          <Push {...repository} />
        ) : (
          <p>
            The branch <code>{repository.branch}</code> is at{" "}
            <code>{(repository.commit ?? "").slice(0, 10)}</code>.
          </p>
        )}
        <Connection project={project} checking={checking} />
      </Step>
      <Step title="Name a model" state={hasModel ? "done" : "now"}>
        {hasModel ? <KnownModel {...page} /> : <ModelForm {...page} />}
      </Step>
      <Step title="Start a session" state={session !== null ? "done" : canStart ? "now" : "later"}>
        {session === null ? (
          <FirstSession project={project} canStart={canStart} />
        ) : (
          <p>
            <a href={projectLink(project.id, `/sessions/${session.id}`)}>{sessionName(session)}</a>{" "}
            <Badge status={session.activity} word={sessionWord(session)} />
          </p>
        )}
      </Step>
      <Step
        title="Merge the agent's work"
        state={change?.status === "merged" ? "done" : session === null ? "later" : "now"}
      >
        <Merge {...page} />
      </Step>
    </>
  );
};

const Setup = ({ data }: { readonly data: Shown }) => {
  const checking = useConnection(data.project);
  return (
    <>
      <h2>Set up the project</h2>
      <ol className="steps">
        {data.found === null ? (
          <Unreadable project={data.project} checking={checking} />
        ) : (
          <Steps {...data} found={data.found} checking={checking} />
        )}
      </ol>
    </>
  );
};

export const setup = framedPage<Shown>({
  load: async ([pid = ""]) => {
    const params = { pid };
    const [project, found, { sessions }, { change_requests: changes }] = await Promise.all([
      request("GET /v1/projects/:pid", { params }),
      orNull(request("GET /v1/projects/:pid/setup", { params }), [409, 503]),
      request("GET /v1/projects/:pid/sessions", { params, query: { limit: 1 } }),
      request("GET /v1/projects/:pid/change-requests", { params, query: { limit: 1 } }),
    ]);
    return { project, found, session: sessions[0] ?? null, change: changes[0] ?? null };
  },
  title: ({ project }) => `Set up ${project.name}`,
  head: headOf(null),
  Body: Setup,
});
