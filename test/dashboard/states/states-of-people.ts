/** States of invitations, of the list of people, and of what a role shows. */
import type { Page } from "playwright-core";
import { DEVICE_CODE, INVITATION_CODE } from "../fakes/fake-people.ts";
import type { World } from "../fakes/fake-service.ts";
import { NEW_TOKEN } from "../fakes/fake-settings.ts";
import { PROJECT_ID } from "../samples/sample-project.ts";
import { having, pressed, type State, unfolded } from "./state-of-a-page.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const JOIN = `#/join/${INVITATION_CODE}`;

/** The reader is a member of the account, with this role in its project. */
export const withRole =
  (role: string) =>
  (world: World): void => {
    world.me = { ...world.me, user: { ...Object(world.me["user"]), role: "member" } };
    world.members = world.members.map((one, index) =>
      index === 0 ? { user: { ...Object(one["user"]), role: "member" }, role, own_role: role } : one,
    );
  };

const used = (world: World): void => {
  world.invitation = null;
};

const PROVIDERS = [
  { id: "oidc", label: "sso.example.com" },
  { id: "github", label: "GitHub" },
];
const withProviders = (world: World): void => {
  world.providers = PROVIDERS;
};

const typedCode =
  (code: string) =>
  async (page: Page): Promise<void> => {
    await page.getByLabel("Code").fill(code);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.locator(".callout").first().waitFor();
  };

const accepted = async (page: Page): Promise<void> => {
  await page.getByRole("button", { name: "Accept the invitation" }).click();
  await page.getByText(NEW_TOKEN).waitFor();
};

/** The newest notice in a place, with the answer to it. */
const lastNotice = (status: string, answer: object) => ({
  status,
  created_at: "2026-01-02T03:04:05.000Z",
  last_try: { at: "2026-01-02T03:04:05.000Z", error: null, took_ms: 84, ...answer },
});

const shownNotices = async (page: Page): Promise<void> => {
  await page.getByRole("heading", { name: "Notify me" }).evaluate((heading) => {
    heading.scrollIntoView();
  });
};

const inModels = { hash: "#/models", shows: "form" };

export const STATES_OF_PEOPLE: readonly State[] = [
  { name: "join", hash: JOIN, shows: "form", signedIn: false },
  { name: "join-providers", hash: JOIN, shows: "[data-provider]", signedIn: false, change: withProviders },
  { name: "sign-in-providers", hash: "#/", shows: "a.button", signedIn: false, change: withProviders },
  { name: "browsers", hash: "#/browsers", shows: ".row", change: withProviders },
  {
    name: "account-notices",
    hash: "#/account",
    shows: "form",
    change: (world) => {
      world.notices = {
        mail: {
          ...world.notices.mail,
          status: "enabled",
          tells: ["asked"],
          last_delivery: lastNotice("failed", {
            status: 550,
            error: "The mail server refuses the address: 550 5.1.1 no such user here",
          }),
        },
        chat: {
          ...world.notices.chat,
          status: "disabled",
          disabled_reason: "gone",
          tells: ["asked", "finished"],
          format: "slack",
          url: "https://hooks.slack.com/…XXXX",
          last_delivery: lastNotice("failed", { status: 410 }),
        },
      };
    },
    act: shownNotices,
  },
  {
    name: "account-notices-without-mail",
    hash: "#/account",
    shows: "form",
    change: (world) => {
      world.notices = {
        ...world.notices,
        mail: { ...world.notices.mail, address: null, unavailable: "not_set_up" },
      };
    },
    act: shownNotices,
  },
  { name: "device", hash: "#/device", shows: "form" },
  { name: "device-wrong", hash: "#/device", shows: "form", act: typedCode("BCDF-BCDF") },
  { name: "device-decision", hash: "#/device", shows: "form", act: typedCode(DEVICE_CODE) },
  {
    name: "device-approved",
    hash: "#/device",
    shows: "form",
    act: async (page) => {
      await typedCode(DEVICE_CODE)(page);
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByText("is signed in as you").waitFor();
    },
  },
  { name: "browsers-all", hash: "#/browsers", shows: ".row", act: pressed("Sign out everywhere") },
  { name: "join-signed-in", hash: JOIN, shows: ".callout" },
  { name: "join-used", hash: JOIN, shows: ".empty", signedIn: false, change: used },
  { name: "joined", hash: JOIN, shows: "form", signedIn: false, act: accepted },
  { name: "audit", hash: "#/audit", shows: ".row" },
  { name: "audit-project", hash: `${PROJECT}/audit`, shows: ".row" },
  {
    name: "audit-none",
    hash: "#/audit?action=master_key.rotated&since=2026-01-31",
    shows: ".empty",
    change: having(() => ({ audit: [] })),
  },
  { name: "models", ...inModels },
  { name: "models-member", hash: "#/models", shows: ".row", change: withRole("member") },
  { name: "models-none", hash: "#/models", shows: ".empty", change: having(() => ({ modelProviders: [] })) },
  {
    name: "models-subscriptions",
    ...inModels,
    act: async (page) => {
      await page.getByText("Save your Claude subscription").click();
      await page.getByText("Replace your ChatGPT subscription").click();
      await page.getByLabel("File").waitFor();
    },
  },
  {
    name: "models-limit-uncounted",
    ...inModels,
    act: async (page) => {
      await page.getByLabel("Limit", { exact: true }).fill("50");
      await page.getByRole("button", { name: "Set the limit" }).click();
      await page.getByRole("button", { name: "Set it anyway" }).click();
      const told = page.getByText("The limit does not count 2 running sessions");
      await told.waitFor();
      await told.scrollIntoViewIfNeeded();
    },
  },
  {
    name: "models-change",
    ...inModels,
    act: async (page) => {
      await page.getByRole("button", { name: "Change: local" }).click();
      await page.getByText("An address at another host").waitFor();
    },
  },
  {
    name: "models-refused",
    ...inModels,
    change: (world) => {
      world.refused = {
        status: 422,
        code: "provider_refused",
        error:
          "api.anthropic.com rejects the key (401). It says: invalid x-api-key. Copy the key again from the provider's page, or make a new one there, and set it. Nothing was saved.",
      };
    },
    act: async (page) => {
      await unfolded("Add a provider")(page);
      await page.getByLabel("Name", { exact: true }).fill("acme");
      await page.keyboard.press("Enter");
      await page.getByText("Nothing was saved").waitFor();
    },
  },
  { name: "people", hash: "#/people", shows: "form" },
  { name: "people-member", hash: "#/people", shows: ".row", change: withRole("member") },
  {
    name: "people-link",
    hash: "#/people",
    shows: "form",
    act: async (page) => {
      await page.getByLabel("Name", { exact: true }).fill("Mia");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").locator("code").waitFor();
    },
  },
  { name: "people-deactivate", hash: "#/people", shows: "form", act: pressed("Deactivate: Vera") },
  { name: "settings-viewer", hash: `${PROJECT}/settings`, shows: ".tag", change: withRole("viewer") },
  {
    name: "new-session-viewer",
    hash: `${PROJECT}/new`,
    shows: "text=Your role in this project",
    change: withRole("viewer"),
  },
  {
    name: "triggers-viewer",
    hash: `${PROJECT}/triggers`,
    shows: "text=Your role in this project",
    change: withRole("viewer"),
  },
];
