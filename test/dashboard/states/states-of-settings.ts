/** States of the first run, of the account, and of what a project is set up with. */
import type { Page } from "playwright-core";
import type { World } from "../fakes/fake-service.ts";
import { PROJECT_ID } from "../samples/sample-project.ts";
import { DELETED } from "../fakes/fake-settings.ts";
import { MANY_AGENTS } from "../samples/sample-options.ts";
import { sampleSizes } from "../samples/sample-saves.ts";
import { CHECK_FAILED } from "../samples/sample-settings.ts";
import { having, pressed, refusing, type State, unfolded, withProject } from "./state-of-a-page.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const SETUP = `${PROJECT}/setup`;
/** A provider's answer to a key. */
const KEY_REFUSED = {
  status: 422,
  code: "provider_refused",
  error:
    "api.openai.com rejects the key (401). It says: Incorrect API key provided. Copy the key again from the provider's page, or make a new one there, and set it. Nothing was saved.",
};

/** A new project: nothing pushed, no model, no session, no change request. */
const untouched = (world: World): void => {
  world.sessions = [];
  world.changes = [];
  const repository = { ...Object(world.setup?.["repository"]), commit: null, empty: true };
  world.setup = { ...world.setup, repository, model: { required: true, model: null, source: null } };
};

const withCode = (world: World): void => {
  const { setup } = world;
  untouched(world);
  world.setup = { ...world.setup, repository: setup?.["repository"] };
};

const withModel = (world: World): void => {
  const { setup } = world;
  untouched(world);
  world.setup = setup;
};

const withSecrets = (world: World): void => {
  world.secrets = ["ANTHROPIC_API_KEY", "PIN", "SENTRY_DSN"];
  world.shortSecrets = ["PIN"];
  world.declared = {
    required: ["ANTHROPIC_API_KEY", "DEPLOY_KEY_OF_THE_STAGING_ENVIRONMENT"],
    optional: ["SENTRY_DSN", "NPM_TOKEN"],
  };
};

/** Fills the form in, and waits for the check that this starts. */
const fillGitHub = async (page: Page): Promise<void> => {
  await page.getByLabel("Repository", { exact: true }).fill("acme/greeter");
  await page.getByLabel("Access token").fill("github_pat_of_mona");
  await page.keyboard.press("Tab");
  await page.locator(".check-step").first().waitFor();
};

const GITHUB = { kind: "github", owner: "acme", name: "greeter", pull_requests: true };
const GIT = { kind: "git", url: "https://git.example.org/team/with/a/long/path/to/the/greeter.git" };

const inSecrets = { hash: `${PROJECT}/secrets`, shows: ".row" };
const inSettings = { hash: `${PROJECT}/settings`, shows: "form" };
const inAccount = { hash: "#/account", shows: ".row" };

export const STATES_OF_SETTINGS: readonly State[] = [
  {
    name: "sign-in-refused",
    hash: "",
    shows: "form",
    signedIn: false,
    act: async (page) => {
      await page.getByLabel("Access token").fill("platform_pat_wrong");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").waitFor();
    },
  },
  { name: "new-project", hash: "#/new", shows: "form" },
  { name: "new-project-copy", hash: "#/new?from=import", shows: "form" },
  { name: "new-project-git", hash: "#/new?from=git", shows: "form", act: unfolded("Use an SSH key") },
  { name: "new-project-github", hash: "#/new?from=github", shows: "form", act: unfolded("Use a GitHub App") },
  {
    name: "new-project-github-failed",
    hash: "#/new?from=github",
    shows: "form",
    change: having(() => ({ check: CHECK_FAILED })),
    act: fillGitHub,
  },
  { name: "new-project-github-passed", hash: "#/new?from=github", shows: "form", act: fillGitHub },
  {
    name: "new-project-refused",
    hash: "#/new?from=import",
    shows: "form",
    change: refusing("Invalid `repository.import_from`.", [
      ["repository.import_from", "Use an address that begins with https://, or an absolute path."],
    ]),
    act: async (page) => {
      await page.getByLabel("Address").fill("a path");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").waitFor();
    },
  },
  { name: "setup", hash: SETUP, shows: ".setup-step .copy", change: untouched },
  {
    name: "setup-token",
    hash: SETUP,
    shows: ".setup-step .copy",
    change: untouched,
    act: async (page) => {
      await pressed("Create an access token")(page);
      await page.getByRole("dialog").locator("code").waitFor();
    },
  },
  { name: "setup-model", hash: SETUP, shows: ".setup-step form", change: withCode },
  {
    name: "setup-key-refused",
    hash: SETUP,
    shows: ".setup-step form",
    change: (world) => {
      withCode(world);
      world.refused = KEY_REFUSED;
    },
    act: async (page) => {
      await page.getByLabel("Key", { exact: true }).fill("sk-wrong");
      await pressed("Try and save the key")(page);
      await page.getByRole("alert").waitFor();
    },
  },
  { name: "setup-session", hash: SETUP, shows: ".setup-step textarea", change: withModel },
  {
    name: "setup-github",
    hash: SETUP,
    shows: ".check-step",
    change: (world) => {
      withModel(world);
      withProject({ repository: GITHUB })(world);
    },
  },
  {
    name: "setup-unreadable",
    hash: SETUP,
    shows: ".check-step",
    change: (world) => {
      world.setup = null;
      world.check = CHECK_FAILED;
      withProject({ repository: GITHUB })(world);
    },
  },
  { name: "setup-done", hash: SETUP, shows: ".setup-step .badge" },
  { name: "account", ...inAccount },
  {
    name: "account-token",
    ...inAccount,
    act: async (page) => {
      await page.getByLabel("Name", { exact: true }).fill("laptop");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").locator("code").waitFor();
    },
  },
  { name: "account-revoke", ...inAccount, act: pressed("Revoke: first") },
  { name: "secrets", ...inSecrets, change: withSecrets },
  { name: "secrets-empty", hash: `${PROJECT}/secrets`, shows: ".empty" },
  { name: "secrets-rotate", ...inSecrets, change: withSecrets, act: pressed("Replace PIN") },
  {
    name: "secrets-refused",
    ...inSecrets,
    change: (world) => {
      withSecrets(world);
      refusing("The name `PLATFORM_X` is reserved.", [["name", "must not begin with PLATFORM_"]])(world);
    },
    act: async (page) => {
      await page.getByLabel("Name", { exact: true }).fill("PLATFORM_X");
      await page.getByLabel("Value").fill("a value");
      await page.keyboard.press("Control+Enter");
      await page.getByRole("alert").waitFor();
    },
  },
  {
    name: "secrets-key-refused",
    ...inSecrets,
    change: (world) => {
      withSecrets(world);
      world.refused = KEY_REFUSED;
    },
    act: async (page) => {
      await page.getByLabel("Name", { exact: true }).fill("OPENAI_API_KEY");
      await page.getByLabel("Value").fill("sk-wrong");
      await pressed("Add the secret")(page);
      await page.getByRole("alert").waitFor();
    },
  },
  { name: "settings", ...inSettings },
  {
    name: "settings-agents",
    hash: `${PROJECT}/settings?section=agents`,
    shows: ".table-frame",
    change: having(() => ({ options: MANY_AGENTS })),
    act: async (page) => {
      await page.getByText("3 abilities").first().click();
      await page.getByText("What other runtimes lack").click();
      await page.locator(".table-frame").evaluate((frame) => {
        frame.scrollLeft = 0;
        frame.scrollIntoView();
      });
    },
  },
  {
    name: "settings-github",
    hash: `${PROJECT}/settings`,
    shows: ".check-step",
    change: withProject({ repository: GITHUB }),
    act: unfolded("Replace the credential"),
  },
  {
    name: "settings-git",
    ...inSettings,
    change: withProject({ repository: GIT }),
    act: unfolded("Replace the credential"),
  },
  {
    name: "settings-archived",
    ...inSettings,
    change: withProject({ status: "archived", triggers_paused: true }),
  },
  { name: "settings-archive", ...inSettings, act: pressed("Archive the project") },
  {
    name: "settings-delete",
    hash: `${PROJECT}/settings?section=delete`,
    shows: ".what-goes",
    change: (world) => {
      world.saves = sampleSizes(world.sessions);
      const changes = {
        files: 2,
        additions: 12,
        deletions: 3,
        head_commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
      };
      world.sessions = world.sessions.map((one) => ({ ...one, changes }));
    },
  },
  {
    name: "settings-delete-mistyped",
    hash: `${PROJECT}/settings?section=delete`,
    shows: ".what-goes",
    act: async (page) => {
      await page.getByLabel("Type greeter to confirm").fill("greter");
      await pressed("Delete the project")(page);
      await page.getByRole("alert").waitFor();
    },
  },
  {
    name: "settings-deleted",
    hash: `${PROJECT}/settings?section=delete`,
    shows: "form",
    change: withProject(DELETED),
  },
];
