/** A project's repository: its addresses, its connection to another server, and its credential there. */
import type { Request } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { given } from "../elements/forms.js";
import { appFields } from "../projects/new-project.js";
import { notice } from "../frame/notices.ts";
import { repositoryName } from "../projects/project.js";
import { checkAgain, type Checking, checkView } from "../projects/repository-check.js";
import { lackedRole } from "../frame/roles.ts";
import { FrameAct } from "../ui/act.tsx";
import { Drawn } from "../ui/drawn.tsx";
import { FieldGroup, Form, TextField } from "../ui/form.tsx";
import { CopyLine, Facts, Time } from "../ui/parts.tsx";

const APP_FIELDS = appFields("");
const APP = "app.";

type Credential = NonNullable<Request<"PUT /v1/projects/:pid/repository/credential">["payload"]>;
type App = NonNullable<Credential["app"]>;

/** @param typed the parts of an app have the prefix `app.` */
const credentialOf = (typed: Readonly<Record<string, string>>): Credential => {
  const filled = Object.entries(given(typed));
  const app = filled.filter(([name]) => name.startsWith(APP));
  return {
    ...Object.fromEntries(filled.filter(([name]) => !name.startsWith(APP))),
    ...(app.length > 0 && {
      // The service names what is missing.
      app: Object.fromEntries(app.map(([name, text]) => [name.slice(APP.length), text])) as App,
    }),
  };
};

const GitFields = () => (
  <>
    <TextField name="username" label="User name" hint="For an `https://` address." />
    <TextField name="password" label="Password or access token" type="password" />
    <TextField name="ssh_private_key" label="Private key" hint="For an `ssh://` address." lines={3} mono />
    <TextField name="known_hosts" label="The server's line of known_hosts" lines={2} mono />
  </>
);

const GitHubFields = () => (
  <>
    <TextField
      name="token"
      label="Access token"
      hint="A fine-grained token for this repository, with read and write access to Contents, and to Pull requests if the project opens them."
      type="password"
    />
    <FieldGroup title="Use a GitHub App instead of a token">
      {APP_FIELDS.map(({ name, label, hint, lines, mono }) => (
        <TextField
          key={name}
          name={APP + name}
          label={label}
          {...(hint !== undefined && { hint })}
          {...(lines !== undefined && { lines })}
          {...(mono !== undefined && { mono })}
        />
      ))}
    </FieldGroup>
  </>
);

const CredentialForm = ({ project: { id: pid, repository } }: { readonly project: Project }) => {
  const replace = async (typed: Readonly<Record<string, string>>): Promise<void> => {
    const payload = credentialOf(typed);
    await request("PUT /v1/projects/:pid/repository/credential", { params: { pid }, payload });
    notice("The repository's server accepted the new credential.");
    checkAgain();
  };
  return (
    <details className="group">
      <summary>Replace the credential</summary>
      <p className="quiet">
        The service tries the new credential first. If the server refuses it, the old one stays.
      </p>
      <Form submit="Use this credential" sending="Trying the credential…" onSend={replace}>
        {repository.kind === "github" ? <GitHubFields /> : <GitFields />}
      </Form>
    </details>
  );
};

interface Shown {
  readonly project: Project;
  /** Null: the repository cannot be reached. */
  readonly gitUrl: string | null;
  readonly checking: Checking | null;
}

export const RepositoryPart = ({ project, gitUrl, checking }: Shown) => {
  const { id, repository, manifest } = project;
  return (
    <>
      <Facts
        rows={[
          ["Repository", repositoryName(project)],
          ["Git address here", gitUrl !== null && <CopyLine text={gitUrl} />],
          ["Project id", <CopyLine key="id" text={id} />],
          ["Created", <Time key="created" at={project.created_at} />],
          [
            "Last read",
            manifest.synced_at !== null && (
              <>
                <Time at={manifest.synced_at} /> <code>{(manifest.commit ?? "").slice(0, 10)}</code>
              </>
            ),
          ],
        ]}
      />
      <p className="actions">
        <FrameAct name="sync-project" input={{ project: id }}>
          Read platform.toml now
        </FrameAct>
      </p>
      {repository.kind !== "hosted" && (
        <>
          <Drawn
            view={checkView(checking, {
              heading: "h3",
              before: "The connection is checked.",
              projectId: id,
            })}
          />
          {lackedRole("replace-credential") === null && <CredentialForm project={project} />}
        </>
      )}
    </>
  );
};
