/** A new project: where its repository is, and how the service reaches it. */
import { type ReactNode, useState } from "react";
import type { Request } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { projectLink } from "../elements/parts.ts";
import { CheckField, FieldGroup, Form, given, TextField, typedIn } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Outside, Trail } from "../ui/parts.tsx";
import { AppFields, credentialOf } from "./credential.tsx";
import { Checking, CheckView, type CheckWish, checkForm } from "./repository-check.tsx";

type NewProject = NonNullable<Request<"POST /v1/projects">["payload"]>;
type Typed = Readonly<Record<string, string>>;

/** A large repository takes its time to arrive. The service ends a slower one. */
const CREATE_TIMEOUT_MS = 600_000;

const PREFIX = "repository.";

const Name = () => (
  <TextField
    name="name"
    label="Project name"
    hint="Optional. Without one, the project gets the repository's name."
  />
);

const Branch = () => (
  <TextField
    name="default_branch"
    label="Default branch"
    hint="Optional. Without one, the repository decides."
  />
);

const HostedFields = () => (
  <>
    <TextField name="name" label="Project name" required />
    <TextField
      name="default_branch"
      label="Default branch"
      hint="Optional. Without one, it is `main`."
      placeholder="main"
    />
  </>
);

const ImportFields = () => (
  <>
    <TextField
      name={`${PREFIX}import_from`}
      label="Address"
      hint="An `https://` address that can be read without a password."
      placeholder="https://github.com/acme/greeter.git"
      required
      mono
    />
    <Name />
    <Branch />
  </>
);

const GitFields = () => (
  <>
    <TextField
      name={`${PREFIX}url`}
      label="Address"
      placeholder="https://git.example.org/team/greeter.git"
      required
      mono
    />
    <TextField
      name={`${PREFIX}username`}
      label="User name"
      hint="For `https://`. Many servers take any name with an access token."
    />
    <TextField name={`${PREFIX}password`} label="Password or access token" type="password" />
    <FieldGroup title="Use an SSH key instead of a password">
      <TextField
        name={`${PREFIX}ssh_private_key`}
        label="Private key"
        hint="For an address with `ssh://`. The key must have no passphrase."
        lines={3}
        mono
      />
      <TextField
        name={`${PREFIX}known_hosts`}
        label="The server's line of known_hosts"
        hint="`ssh-keyscan git.example.org` prints it. Compare it with the fingerprint that the server publishes."
        lines={2}
        mono
      />
    </FieldGroup>
    <Name />
    <Branch />
  </>
);

const GitHubFields = () => (
  <>
    {/* The service says of the owner what is wrong with both. */}
    <TextField name={`${PREFIX}owner`} label="Repository" placeholder="acme/greeter" required mono />
    <TextField
      name={`${PREFIX}token`}
      label="Access token"
      hint="A fine-grained token for this repository, with read and write access to Contents, and to Pull requests if you want them."
      type="password"
    />
    <CheckField
      name={`${PREFIX}pull_requests`}
      label="Open a pull request for each change request"
      isTicked
    />
    <AppFields prefix={PREFIX} />
    <FieldGroup title="GitHub Enterprise Server">
      <TextField
        name={`${PREFIX}api_url`}
        label="Address of its API"
        placeholder="https://github.example.org/api/v3"
        mono
      />
    </FieldGroup>
    <Name />
  </>
);

/** The service names what is missing, or what is wrong. */
const repositoryOf = (fields: Readonly<Record<string, unknown>>) => fields as CheckWish["repository"];

/** @throws if the repository is not written as owner/name */
const gitHubOf = (typed: Typed) => {
  const { owner: written = "", pull_requests: wished, ...fields } = credentialOf(PREFIX, typed);
  const [owner = "", name = "", ...rest] = String(written).split("/");
  if (owner === "" || name === "" || rest.length > 0)
    throw new Error("Write the repository as owner/name, for example acme/greeter.");
  return repositoryOf({ kind: "github", owner, name, pull_requests: wished === "yes", ...fields });
};

const hasGitHubCredential = (typed: Typed): boolean => {
  const { token, app = {} } = credentialOf(PREFIX, typed);
  return token !== undefined || Object.keys(Object(app)).length === 3;
};

interface Origin {
  /** In the address. */
  readonly id: string;
  readonly label: string;
  readonly about: string;
  readonly Fields: () => ReactNode;
  /** @throws an error with a sentence for the reader */
  readonly repository: (typed: Typed) => CheckWish["repository"];
  /** The field that names the repository, and the project, if nothing else does. */
  readonly named?: string;
  /** The check of what is typed so far: what is said before it, and whether enough is typed. Null: there is nothing to check. */
  readonly check: { readonly before: string; readonly isEnough: (typed: Typed) => boolean } | null;
}

const HOSTED: Origin = {
  id: "hosted",
  label: "New repository",
  about: "The service keeps the repository. You push your code to it, or start with nothing.",
  Fields: HostedFields,
  repository: () => ({ kind: "hosted" }),
  check: null,
};

const ORIGINS: readonly Origin[] = [
  HOSTED,
  {
    id: "import",
    label: "Copy",
    about: "The service copies a public repository once, and keeps the copy.",
    Fields: ImportFields,
    repository: (typed) => repositoryOf({ kind: "hosted", ...credentialOf(PREFIX, typed) }),
    named: `${PREFIX}import_from`,
    check: {
      before: "The service tries the address as soon as you have filled it in.",
      isEnough: (typed) => Boolean(typed[`${PREFIX}import_from`]),
    },
  },
  {
    id: "git",
    label: "Git server",
    about: "The repository stays on its server. The service pushes the agents' work there.",
    Fields: GitFields,
    repository: (typed) => repositoryOf({ kind: "git", ...credentialOf(PREFIX, typed) }),
    named: `${PREFIX}url`,
    check: {
      before: "The service tries the address and the credential as soon as you have filled them in.",
      isEnough: (typed) => Boolean(typed[`${PREFIX}url`]),
    },
  },
  {
    id: "github",
    label: "GitHub",
    about: "The repository stays on GitHub. A change request can have a pull request.",
    Fields: GitHubFields,
    repository: gitHubOf,
    named: `${PREFIX}owner`,
    check: {
      before: "The service tries each step as soon as you have named the repository and a token or an app.",
      isEnough: hasGitHubCredential,
    },
  },
];

/** The last part of an address or of `owner/name`. */
const lastPart = (address: string): string =>
  address
    .replace(/\/+$/, "")
    .replace(/\.git$/, "")
    .split(/[/:]/)
    .at(-1) ?? "";

const branchOf = ({ default_branch: branch }: Typed) => given({ default_branch: branch });

const wishOf = ({ repository, named }: Origin, typed: Typed): NewProject => ({
  name: typed["name"] || lastPart(named === undefined ? "" : (typed[named] ?? "")),
  ...branchOf(typed),
  repository: repository(typed),
});

/** What the form names so far. Null: not enough. */
const checkOf = ({ repository, check }: Origin, typed: Typed): CheckWish | null => {
  if (check === null || !check.isEnough(typed)) return null;
  try {
    return { repository: repository(typed), ...branchOf(typed) };
  } catch {
    // The repository is not written as owner/name yet.
    return null;
  }
};

const GitHubHelp = () => (
  <p className="quiet">
    <Outside to="https://github.com/settings/personal-access-tokens/new">Create a token on GitHub</Outside>
    {" (opens a new tab), or use "}
    <Outside to="https://github.com/settings/apps">a GitHub App</Outside>
    {" that you own. The credential stays in this service, encrypted."}
  </p>
);

const OriginForm = ({ origin }: { readonly origin: Origin }) => {
  const { Fields, check } = origin;
  const [checking] = useState(() => new Checking());
  const create = async (typed: Typed): Promise<void> => {
    const { id } = await request("POST /v1/projects", { payload: wishOf(origin, typed) }, CREATE_TIMEOUT_MS);
    location.hash = projectLink(id, "/setup");
  };
  return (
    <div className="beside">
      <div>
        {origin.id === "github" && <GitHubHelp />}
        <Form
          submit="Create the project"
          sending={check === null ? "Creating…" : "Reaching the repository…"}
          onSend={create}
          onEdit={(form) => {
            const wish = checkOf(origin, typedIn(form));
            if (wish !== null) void checkForm(checking, form, wish);
          }}
        >
          <Fields />
        </Form>
      </div>
      {check !== null && <CheckView checking={checking} heading="h2" before={check.before} />}
    </div>
  );
};

const Page = ({ data: { origin } }: { readonly data: { readonly origin: Origin } }) => (
  <>
    <h1>Create a project</h1>
    <nav className="tabs" aria-label="Where the repository is">
      {ORIGINS.map(({ id, label }) => (
        <a key={id} href={`#/new?from=${id}`} aria-current={id === origin.id ? "true" : undefined}>
          {label}
        </a>
      ))}
    </nav>
    <p className="quiet">{origin.about}</p>
    {/* Another kind of repository begins without what was typed, refused or checked. */}
    <OriginForm key={origin.id} origin={origin} />
  </>
);

export const newProject = framedPage<{ readonly origin: Origin }>({
  load: async (_params, query) => ({
    origin: ORIGINS.find(({ id }) => id === query.get("from")) ?? HOSTED,
  }),
  title: () => "Create a project",
  head: () => (
    <Trail
      steps={[
        ["Projects", "#/projects"],
        ["Create a project", null],
      ]}
    />
  ),
  Body: Page,
});
