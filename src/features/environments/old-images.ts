/**
 * Keeps the images of builds within their budget of disk space, and the ledger of builds short. It looks at this node's
 * images on a timer, and takes no input.
 *
 *  V1 An image stays while a sandbox boots on it or uses it. The newest image of each project also stays.
 *  V2 An image whose build has no row is removed: its project is gone. A build has its row before its image.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { waitOutOutage } from "../../store/ports/outage.ts";
import { BuildSite } from "../../builder/site/port.ts";
import { EnvironmentBuilds } from "../../store/ports/projects/environment-builds.ts";
import { DUTIES } from "../../services/duties.ts";
import { runDuty } from "../../services/duty.ts";

export const oldImagesLayer = ({ nodeId }: { readonly nodeId: string }) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const builds = yield* EnvironmentBuilds;
      const site = yield* BuildSite;
      const round = Effect.gen(function* () {
        const inUse = yield* builds.inUse(nodeId);
        const unheld = new Set(yield* builds.unheld(yield* site.held));
        const images = yield* site.collect({
          kept: inUse,
          gone: unheld,
          now: yield* Clock.currentTimeMillis,
        });
        // The site names removed images once. A round that begins again after an outage would not hear of them.
        if (images.length > 0) yield* waitOutOutage("environments", builds.forgetImages(images));
        yield* builds.prune;
      });
      yield* runDuty("environments", {
        round,
        first: "a period",
        periodMs: DUTIES.environments.periodMs,
      });
    }),
  );
