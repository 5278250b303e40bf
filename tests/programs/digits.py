"""The basics of training: data, a model, the loop, saving and loading.  ``python digits.py torch`` or ``engine``.

It prints the same under either library: losses and accuracies on the handwritten digits of scikit-learn.
"""

import importlib
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

torch = importlib.import_module(sys.argv[1])
nn = importlib.import_module(f"{sys.argv[1]}.nn")
data = importlib.import_module(f"{sys.argv[1]}.utils.data")


class Digits(data.Dataset):
    """Images of 8 by 8 pixels between 0 and 1, and the digits that they show."""

    def __init__(self, train, transform=None):
        digits = load_digits()
        part = slice(0, 1400) if train else slice(1400, None)
        self.images, self.labels, self.transform = digits.images[part], digits.target[part], transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.tensor(self.images[i], dtype=torch.float32) / 16
        return image if self.transform is None else self.transform(image), int(self.labels[i])


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(8 * 8, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
        )

    def forward(self, x):
        return self.linear_relu_stack(self.flatten(x))


def train(loader, model, loss_fn, optimizer):
    size = len(loader.dataset)
    model.train()
    for batch, (x, y) in enumerate(loader):
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 10 == 0:
            print(f"loss: {loss.item():>.4f}  [{(batch + 1) * len(x):>5d}/{size:>5d}]")


def test(loader, model, loss_fn):
    model.eval()
    loss, correct = 0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += loss_fn(out, y).item()
            correct += (out.argmax(1) == y).type(torch.float).sum().item()
    print(
        f"Test error:\n Accuracy: {100 * correct / len(loader.dataset):>0.1f}%, Avg loss: {loss / len(loader):>.4f}\n"
    )


torch.manual_seed(0)
everything = Digits(train=True)
training, validation = data.random_split(everything, [0.8, 0.2])
print(len(everything), len(training), len(validation), everything[0][0].shape, everything[0][1])
flipped = Digits(train=True, transform=lambda image: image.flip(1))
print(bool((flipped[0][0].flip(1) == everything[0][0]).all()))

model = NeuralNetwork()
print(model)
for name, parameter in model.named_parameters():
    print(f"Layer: {name} | Size: {parameter.size()} | Values: {parameter.flatten()[:2]}")
logits = model(everything[0][0].unsqueeze(0))
print(nn.Softmax(dim=1)(logits), logits.argmax(1))

loss_fn = nn.CrossEntropyLoss()
for make in (
    lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    lambda parameters: torch.optim.Adam(parameters, lr=1e-3, weight_decay=1e-4),
):
    torch.manual_seed(1)
    model = NeuralNetwork()
    optimizer = make(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    loader = data.DataLoader(training, batch_size=32, shuffle=True)
    for epoch in range(4):
        print(f"Epoch {epoch + 1}, lr {scheduler.get_last_lr()}\n-------------------------------")
        train(loader, model, loss_fn, optimizer)
        test(data.DataLoader(validation, batch_size=64), model, loss_fn)
        scheduler.step()
    print(optimizer)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.pth"
    torch.save(model.state_dict(), path)
    again = NeuralNetwork()
    print(again.load_state_dict(torch.load(path)))
test(data.DataLoader(Digits(train=False), batch_size=64), again, loss_fn)
for i in range(5):
    image, label = Digits(train=False)[i]
    with torch.no_grad():
        print(f"Predicted: {again(image.unsqueeze(0))[0].argmax(0)}, Actual: {label}")
