/** Settings of images, of the builds of Dockerfiles, and of packages. */
import { DAY, define, duration, HOUR, MINUTE } from "./setting.ts";

export const ENVIRONMENT_SETTINGS = define({
  PLATFORM_IMAGES_DIR: {
    group: "Environments",
    kind: "text",
    fallback: null,
    shown: "`/var/lib/platform/…/images` for root, `images` in the data directory for other users",
    about:
      "The directory of all images, built and imported. If the service runs as root, every user must be able to enter " +
      "it, because each sandbox has users of its own. Each installation needs a directory of its own.",
  },
  PLATFORM_BUILDER: {
    group: "Environments",
    kind: "choice",
    values: ["buildah", "none"],
    about:
      "What builds a project's Dockerfile. `buildah` needs root, buildah and bubblewrap. With `none`, Dockerfiles have no effect: sandboxes " +
      "of projects without an `image` see this machine's files.",
  },
  PLATFORM_BUILDS_AT_ONCE: {
    group: "Environments",
    kind: "integer",
    fallback: 1,
    min: 1,
    max: 100,
    about: "How many environments are built at the same time on a node. Other builds wait.",
  },
  PLATFORM_BUILD_TIMEOUT_MS: duration(
    "Environments",
    30 * MINUTE,
    "How long one build may take. After that, the build fails with `timeout`.",
  ),
  PLATFORM_BUILD_MEMORY_MB: {
    group: "Environments",
    kind: "integer",
    fallback: 4096,
    min: 256,
    max: 1_000_000,
    about: "How much memory one build may use, in MiB.",
  },
  PLATFORM_BUILD_DISK_MB: {
    group: "Environments",
    kind: "integer",
    fallback: 32_768,
    min: 100,
    max: 10_000_000,
    about: "How much one build may write to the disk, in MiB: context, layers and image.",
  },
  PLATFORM_IMAGES_MAX_MB: {
    group: "Environments",
    kind: "integer",
    fallback: 51_200,
    min: 100,
    max: 100_000_000,
    about:
      "How much disk space all images together may use, in MiB. Above it, images of builds that no sandbox needs are removed, the least " +
      "recently used first.",
  },
  PLATFORM_ENVIRONMENT_REFRESH_MS: duration(
    "Environments",
    7 * DAY,
    "How old the last build of an environment may be. If it is older, the next session starts a new build, which checks the registries for " +
      "newer base images. The session does not wait for this build.",
  ),
  PLATFORM_ENVIRONMENT_BASES_MS: duration(
    "Environments",
    6 * HOUR,
    "After which time the service looks up the tags of base images again. If a tag stands for another image than at the last build, a new build " +
      "starts at once. Each tag is looked up once for all projects.",
  ),
  PLATFORM_IMAGE_REGISTRY: {
    group: "Environments",
    kind: "structured",
    fallback: null,
    expects: "host and path in a registry",
    about:
      "Where images of builds and added agent runtimes are pushed for sandboxes in a cluster, e.g. `images.example.com/team/platform`. Each image is pushed after its build. Only a " +
      "registry without TLS needs `http://` before its host.",
  },
  PLATFORM_IMAGE_REGISTRY_AUTH: {
    group: "Environments",
    kind: "text",
    fallback: null,
    about:
      'The file with the credentials for that registry, in the format of container engines: `{"auths": {"images.example.com": {"auth": "…"}}}`. It is ' +
      "read again for each image. The cluster needs its own credentials for reading.",
  },
  PLATFORM_PACKAGE_CACHE_MB: {
    group: "Package cache",
    kind: "integer",
    fallback: 10_240,
    min: 0,
    max: 100_000_000,
    about:
      "How much disk space [package files](packages.md) may use on each node, in MiB. Above it, the files that were unused for the longest time are " +
      "removed. With `0`, or if no registry is named, there is no cache, and sandboxes ask the registries themselves.",
  },
  PLATFORM_PACKAGE_CACHE_NPM: {
    group: "Package cache",
    kind: "url",
    fallback: null,
    about:
      "The npm registry whose package files are kept. Its host may have a private or loopback address, or use plain http. Sandboxes use it if they may reach " +
      "its host and no `.npmrc` names another one. Without it, npm asks its own default.",
  },
  PLATFORM_PACKAGE_CACHE_PYPI: {
    group: "Package cache",
    kind: "url",
    fallback: null,
    about:
      "The Python package index, on any host like the npm registry, that pip uses in sandboxes, with the path to its projects, if they may reach its host and pip has no other one. Its package files are kept. Without it, pip asks its own default.",
  },
});
