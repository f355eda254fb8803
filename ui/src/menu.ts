/** The pages of the menu, with the key that follows g. */
export const menu: { path: string[]; name: string; key: string; also?: string[] }[] = [
  { path: [], name: "Overview", key: "o" },
  { path: ["queues"], name: "Queues", key: "q", also: ["queue"] },
  { path: ["dead"], name: "Dead letters", key: "d" },
  { path: ["find"], name: "Find", key: "f" },
  { path: ["workers"], name: "Workers", key: "w", also: ["worker"] },
  { path: ["live"], name: "Live", key: "l" },
  { path: ["system"], name: "System", key: "s", also: ["cluster", "limits", "webhooks"] },
];
