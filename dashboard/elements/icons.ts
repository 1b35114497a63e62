/** The page's icons, from the package @iconify-json/lucide. `npm run docs` writes this file; scripts/icons.ts names them. */

/*! @license Lucide - ISC License, Copyright (c) 2026 Lucide Icons and Contributors. Some are of Feather - MIT License, Copyright (c) 2013-present Cole Bemis. */

/** Its shapes, in a square of 24. */
export type IconNode = readonly (readonly [
  shape: "circle" | "path" | "rect",
  attributes: Readonly<Record<string, string>>,
])[];

export const CHECK: IconNode = [["path", { d: "M20 6L9 17l-5-5" }]];
export const CIRCLE_ALERT: IconNode = [["circle", { cx: "12", cy: "12", r: "10" }], ["path", { d: "M12 8v4m0 4h.01" }]];
export const CIRCLE_CHECK: IconNode = [["circle", { cx: "12", cy: "12", r: "10" }], ["path", { d: "m16 9l-5.5 5.5L8 12" }]];
export const CIRCLE_DASHED: IconNode = [["path", { d: "M10.1 2.182a10 10 0 0 1 3.8 0m0 19.636a10 10 0 0 1-3.8 0m7.509-18.097a10 10 0 0 1 2.69 2.7M2.182 13.9a10 10 0 0 1 0-3.8m18.097 7.509a10 10 0 0 1-2.7 2.69M21.818 10.1a10 10 0 0 1 0 3.8M3.721 6.391a10 10 0 0 1 2.7-2.69m-.03 16.578a10 10 0 0 1-2.69-2.7" }]];
export const CIRCLE_DOT: IconNode = [["circle", { cx: "12", cy: "12", r: "1" }], ["circle", { cx: "12", cy: "12", r: "10" }]];
export const CIRCLE_PAUSE: IconNode = [["circle", { cx: "12", cy: "12", r: "10" }], ["path", { d: "M10 15V9m4 6V9" }]];
export const CIRCLE_X: IconNode = [["circle", { cx: "12", cy: "12", r: "10" }], ["path", { d: "m15 9l-6 6m0-6l6 6" }]];
export const COPY: IconNode = [["rect", { width: "14", height: "14", x: "8", y: "8", rx: "2", ry: "2" }], ["path", { d: "M4 16c-1.1 0-2-.9-2-2V4c0-1.1.9-2 2-2h10c1.1 0 2 .9 2 2" }]];
export const FILE_TEXT: IconNode = [["path", { d: "M6 22a2 2 0 0 1-2-2V4a2 2 0 0 1 2-2h8a2.4 2.4 0 0 1 1.704.706l3.588 3.588A2.4 2.4 0 0 1 20 8v12a2 2 0 0 1-2 2z" }], ["path", { d: "M14 2v5a1 1 0 0 0 1 1h5M10 9H8m8 4H8m8 4H8" }]];
export const GIT_PULL_REQUEST: IconNode = [["circle", { cx: "18", cy: "18", r: "3" }], ["circle", { cx: "6", cy: "6", r: "3" }], ["path", { d: "M13 6h3a2 2 0 0 1 2 2v7M6 9v12" }]];
export const GLOBE: IconNode = [["circle", { cx: "12", cy: "12", r: "10" }], ["path", { d: "M12 2a14.5 14.5 0 0 0 0 20a14.5 14.5 0 0 0 0-20M2 12h20" }]];
export const LIGHTBULB: IconNode = [["path", { d: "M15 14c.2-1 .7-1.7 1.5-2.5c1-.9 1.5-2.2 1.5-3.5A6 6 0 0 0 6 8c0 1 .2 2.2 1.5 3.5c.7.7 1.3 1.5 1.5 2.5m0 4h6m-5 4h4" }]];
export const LOADER_CIRCLE: IconNode = [["path", { d: "M21 12a9 9 0 1 1-6.219-8.56" }]];
export const MOON: IconNode = [["path", { d: "M20.985 12.486a9 9 0 1 1-9.473-9.472c.405-.022.617.46.402.803a6 6 0 0 0 8.268 8.268c.344-.215.825-.004.803.401" }]];
export const MOVE_RIGHT: IconNode = [["path", { d: "m18 8l4 4l-4 4M2 12h20" }]];
export const PENCIL: IconNode = [["path", { d: "M21.174 6.812a1 1 0 0 0-3.986-3.987L3.842 16.174a2 2 0 0 0-.5.83l-1.321 4.352a.5.5 0 0 0 .623.622l4.353-1.32a2 2 0 0 0 .83-.497zM15 5l4 4" }]];
export const SEARCH: IconNode = [["path", { d: "m21 21l-4.34-4.34" }], ["circle", { cx: "11", cy: "11", r: "8" }]];
export const SQUARE_TERMINAL: IconNode = [["path", { d: "m7 11l2-2l-2-2m4 6h4" }], ["rect", { width: "18", height: "18", x: "3", y: "3", rx: "2", ry: "2" }]];
export const TRASH: IconNode = [["path", { d: "M10 11v6m4-6v6m5-11v14a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V6M3 6h18M8 6V4a2 2 0 0 1 2-2h4a2 2 0 0 1 2 2v2" }]];
export const WRENCH: IconNode = [["path", { d: "M14.7 6.3a1 1 0 0 0 0 1.4l1.6 1.6a1 1 0 0 0 1.4 0l3.106-3.105c.32-.322.863-.22.983.218a6 6 0 0 1-8.259 7.057l-7.91 7.91a1 1 0 0 1-2.999-3l7.91-7.91a6 6 0 0 1 7.057-8.259c.438.12.54.662.219.984z" }]];
