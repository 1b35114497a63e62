/**
 * The behaviour of every adapter of the store's port (src/store/ports/journal.ts), run over Postgres and over the
 * in-memory twin.
 */
import { describe } from "vitest";
import { checkWith, type StoreLayer } from "./store-fixture.ts";
import { checkAccounts } from "./store-accounts.ts";
import { checkAdmission } from "./store-admission.ts";
import { checkArrivals } from "./store-arrivals.ts";
import { checkBatches } from "./store-batches.ts";
import { checkChangeRequests } from "./store-change-requests.ts";
import { checkConnectors } from "./store-connectors.ts";
import { checkConversationAttacks } from "./store-conversation-attacks.ts";
import { checkConversationReaders } from "./store-conversation-readers.ts";
import { checkConversationSteps } from "./store-conversation-steps.ts";
import { checkApprovals } from "./store-approvals.ts";
import { checkConversations } from "./store-conversations.ts";
import { checkEnvironmentBuilds } from "./store-environment-builds.ts";
import { checkEvents, checkPages } from "./store-events.ts";
import { checkGrants } from "./store-grants.ts";
import { checkPeople } from "./store-people.ts";
import { checkBrowsers } from "./store-browsers.ts";
import { checkPreviews } from "./store-previews.ts";
import { checkNodes } from "./store-nodes.ts";
import { checkLogs } from "./store-logs.ts";
import { checkOutboundDeliveries } from "./store-outbound-deliveries.ts";
import { checkOutboundEvents } from "./store-outbound-events.ts";
import { checkOutboundWebhooks } from "./store-outbound-webhooks.ts";
import { checkProjectUsage } from "./store-project-usage.ts";
import { checkQueue } from "./store-queue.ts";
import { checkRecords } from "./store-records.ts";
import { checkRequests } from "./store-requests.ts";
import { checkSandboxes } from "./store-sandboxes.ts";
import { checkGivenSecrets } from "./store-secrets.ts";
import { checkSessionLists } from "./store-session-lists.ts";
import { checkSessions } from "./store-sessions.ts";
import { checkTransitions } from "./store-transitions.ts";
import { checkTriggers } from "./store-triggers.ts";
import { checkWebhooks } from "./store-webhooks.ts";

export const storeConformance = (name: string, layer: StoreLayer): void => {
  describe(`the store in ${name}`, () => {
    const check = checkWith(layer);
    checkSessions(check);
    checkSessionLists(check);
    checkSandboxes(check);
    checkEnvironmentBuilds(check);
    checkAdmission(check);
    checkQueue(check);
    checkBatches(check);
    checkTriggers(check);
    checkRequests(check);
    checkWebhooks(check);
    checkAccounts(check);
    checkArrivals(check);
    checkRecords(check);
    checkGrants(check);
    checkPeople(check);
    checkBrowsers(check);
    checkPreviews(check);
    checkLogs(check);
    checkNodes(check);
    checkGivenSecrets(check);
    checkChangeRequests(check);
    checkConnectors(check);
    checkApprovals(check);
    checkConversations(check);
    checkConversationAttacks(check);
    checkConversationReaders(check);
    checkConversationSteps(check);
    checkProjectUsage(check);
    checkPages(check);
    checkEvents(check);
    checkTransitions(check);
    checkOutboundWebhooks(check);
    checkOutboundDeliveries(check);
    checkOutboundEvents(check);
  });
};
