"""Views and in-place writes: who sees a write, where the gradients go, which writes are refused, and version counters.

Programs are played against a naive model (a tensor is a list of places in a buffer of values and tangents), always, and
against PyTorch, where it is installed: the same values, graphs, versions, gradients and errors.
"""

import contextlib
import gc
import importlib
import importlib.util
import io
import itertools
import math

import numpy as np
import pytest
from against_torch import cases, chain, outcome
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from over_tables import over

import engine

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
HAVE_TORCH = importlib.util.find_spec("torch") is not None

# ---- which results have memory of their own, and how their elements lie there


@over("operation", cases("""
x.cumsum(0)
x.cumprod(0)
x.max(0).values
x.min(0).values
x.median(0).values
x.to(x.dtype, False, True)
torch.nn.functional.embedding(torch.tensor([2])[0], y)
"""))  # fmt: skip
def test_a_result_of_one_number_has_memory_of_its_own(operation):
    y = engine.arange(6.0).reshape(3, 2)
    before = y.tolist()
    result = eval(operation, {"torch": engine, "x": y[1, 1], "y": y})
    result.zero_()
    assert y.tolist() == before


@over("operation", cases("""
x.sum(2)
x.mean(2)
x.prod(2)
x.var(2)
x.std(2, keepdim=True)
x.max(2).values
x.max(2).indices
x.amax(2)
x.argmax(2)
x.median(2).values
x.logsumexp(2)
x.norm(dim=2)
x.cumsum(1)
x.cumprod(1)
x.tril()
x.repeat(1, 1, 1)
y.expand(2, 4, 3, 2).double()
torch.rot90(x, 4)
torch.nn.functional.one_hot(x.long())
torch.nn.functional.pad(y, (1, 1), "reflect")
torch.nn.functional.adaptive_avg_pool2d(y, (2, 1))
torch.nn.functional.adaptive_max_pool2d(y, (2, 1))
torch.multinomial(y[0], 2)
y.nonzero(as_tuple=True)[0]
"""))  # fmt: skip
def test_results_that_pytorch_puts_in_order_can_be_viewed(operation):
    for library in ["engine"] + ["torch"] * HAVE_TORCH:
        t = importlib.import_module(library)
        y = t.arange(24.0).reshape(4, 3, 2)
        result = eval(operation, {"torch": t, "x": y.permute(2, 1, 0), "y": y})
        assert result.is_contiguous()
        result.view(-1)


# ---- programs, one a line; y is what they leave behind

PROGRAMS = cases("""
y[0]=1
y[0]=w
y[0]=w[:1]
y[...]=w
y[...]=5
y[:]=w
y[()]=w
y[None]=w
y[True]=w
y[[0,1]]=w
y[[0,1]]=5
y[y>5]=0.
y[y>5]=w[0]
y[0,[0,1]]=w[:2]
y[0,0]=w[1]
y[1:,2:]=w[:2]
y.zero_()
y.fill_(3)
y.fill_(w[0])
y.copy_(w)
y[0].zero_()
y[0].copy_(w)
y[0].fill_(1)
y.mul_(2)
y.mul_(y)
y.mul_(w)
y.add_(w)
y[0].mul_(w)
y[0].mul_(y[1])
y[0].mul_(y[0])
y.t().mul_(2)
y.view(-1)[3:5].add_(1)
y.exp_()
y[0].exp_()
y.masked_fill_(y>5,0.)
y.index_put_((torch.tensor([0]),),w)
y.index_fill_(0,torch.tensor([0]),1.)
y.scatter_(0,torch.tensor([[0,1,2,0]]),w.view(1,4))
y.index_add_(0,torch.tensor([0]),w.view(1,4))
y.t_()
y.unsqueeze_(0)
y.squeeze_()
y.transpose_(0,1)
y[0].unsqueeze_(0)
v=y[0]; y.t_(); y=v
v=y[0]; y.t_(); v.mul_(2)
v=y[0]; y.t_(); y.mul_(2); y=v
v=y[:,1:]; y.transpose_(0,1); v[0].mul_(w[1:])
v=y[1:].t(); y.unsqueeze_(1); v.exp_()
v=y.view(-1); y.unsqueeze_(0); y.squeeze_(); v[3:5].add_(1)
u=y[0]; v=y[1]; y.t_(); u.mul_(v); y.t_()
u=y[0]; v=u[1:]; y.t_(); u.unsqueeze_(0); v.mul_(2); y=u
v=y.diagonal(); y.unsqueeze_(2); v.fill_(3.); y.squeeze_(2); y=v
v=y.detach(); y.t_(); v.mul_(2)
v=y.detach()[0]; y.t_(); y.mul_(2); y=v*w
v=torch.no_grad()(lambda: y[0])(); y.t_(); y=v
v=torch.no_grad()(lambda: y[0])(); y.t_(); v.mul_(2)
v=y[0]; y.unbind()[1]; y.t_(); v.unsqueeze_(1); y=v.squeeze_(1)
v=y[0]; y.unsqueeze_(0); del v; y.squeeze_(0); y=y[0]
v=y[0]; unpad=y.unsqueeze_(0).unsqueeze_(0).squeeze_((0,1)); v.mul_(w); y=unpad
v=y[0]; y.unsqueeze_(0); print(v._version, v._base is y, v.grad_fn.name()); y=v
v=y[0]; u=y.t_()[0]; v.mul_(2); u.mul_(3); y=v
v=y[0]; y.t_(); torch.autograd.grad(v.sum(), y)
v=y[0]; v.unsqueeze_(0); y=v
v=y[0]; v.mul_(2); y=v
v=y[0]; y.mul_(2); y=v
v=y[0]; u=v[1:]; y.mul_(2); y=u
v=y[0]; u=v[1:]; v.mul_(2); y=u
v=y[0]; u=v[1:]; u.mul_(2); y=v
a,b=y[:2].unbind(); y.mul_(2); y=a
a,b=y[:2].unbind(); y.mul_(2); print(a)
a,b=y[:2].unbind(); y.mul_(2); (a+1).sum().backward()
a,b=y[:2].unbind(); a.mul_(2)
a,b=y[:2].unbind(); a[0]=2
a=y.split(1); a[1].add_(1)
a=y.chunk(2); a[1].add_(1)
a=list(y); a[1].add_(1)
a,b=z[:2].unbind(); a.mul_(2); y=z
a,b=z[:2].unbind(); a.mul_(w); y=z
a,b=z[:2].unbind(); a.mul_(w); y=a
a,b=z[:2].unbind(); z.mul_(w); y=a
a,b=z[:2].unbind(); z.mul_(w); y=z
x.mul_(2)
x[0].mul_(2)
x[0]=1
x[[0]]=1
x[0][0]=1
x.view(-1).zero_()
x.detach().mul_(2); y=x
x.data.mul_(2); y=x
x.unbind()[0].mul_(2)
with torch.no_grad(): x.mul_(2); y=x
with torch.no_grad(): x[0].mul_(2); y=x
v=no_grad(lambda: x[0]); v.mul_(2)
v=no_grad(lambda: y[0]); v.mul_(2)
v=no_grad(lambda: z[0]); v.mul_(2); y=z
v=no_grad(lambda: z[0]); v.mul_(w); y=z
v=no_grad(lambda: z[0]); v.mul_(w); y=v
v=no_grad(lambda: y[0]); y.mul_(2); print(v.requires_grad); y=v
v=no_grad(lambda: y[0]); y.mul_(2); (v*1).sum()
v=no_grad(lambda: y[0]); print(v.requires_grad, v.is_leaf, v.grad_fn)
v=no_grad(lambda: z[0]); z.mul_(w); print(v.requires_grad); y=v
v=z[0]; no_grad(lambda: v.mul_(w)); y=z
v=y[0]; no_grad(lambda: v.mul_(w[0])); y=v
v=y[0]; no_grad(lambda: y.mul_(w[0])); y=v
y.expand(2,3,4).mul_(2)
y[0].expand(3,4).add_(1)
y[0].expand(3,4)[0].add_(1)
y.expand(3,4).add_(1)
y.add_(torch.ones(2,3,4))
y[0].add_(torch.ones(3,4))
y.add_(torch.ones(5))
n.add_(1.5)
n.add_(w)
n.mul_(True)
n.div_(2)
n.copy_(w); y=n
b.add_(1)
b.logical_not_()
b[0]=3; y=b
n[0]=w; y=n
n[0]=1.7; y=n
y.double().add_(y)
y.mul_(w.double())
y.add_(w.double().sum())
y.half().mul_(w)
i=inference(lambda: torch.ones(3, 4)); i.mul_(2)
i=inference(lambda: torch.ones(3, 4)); i[0]=2
i=inference(lambda: torch.ones(3, 4)); i[0].mul_(2)
i=inference(lambda: torch.ones(3, 4)); (i*x).sum()
i=inference(lambda: torch.ones(3, 4)); i.requires_grad_()
i=inference(lambda: torch.ones(3, 4)); y.mul_(i)
i=inference(lambda: torch.ones(3, 4)); y=i*2
y.requires_grad_(False)
y.detach_(); print(y.requires_grad)
v=y[0]; v.detach_()
v=y.detach(); v.zero_(); y.sum().backward()
y.exp_(); v=y.detach(); v.zero_(); y.sum().backward()
u=y.exp(); y.mul_(2); u.sum().backward()
u=y.sin(); y.mul_(2); u.sum().backward()
u=y.sin(); y[0].mul_(2); u.sum().backward()
u=y*w; w.data.zero_(); u.sum().backward(); print(x.grad)
v=y[0]; u=v*v; y.add_(1); u.sum().backward()
v=y[0]; u=v.exp(); u.add_(1); y.sum().backward(); u.sum().backward()
u=y[0].exp(); u[0]=1; u.sum().backward()
u=(y*y).sum(); y.zero_(); y.add_(1); y[0]=3; u.backward()
u=x.sum(); u2=u*u; u.add_(1); u2.backward()
u=x.sum(); u.add_(1); u2=u*u; u.add_(1); u2.backward()
u=x.sum(); u2=u.exp(); u2.mul_(2); u2.backward()
u=x[0,0]; u2=u*u; x.data.add_(1); u2.backward(); print(x.grad[0,0])
idx=torch.tensor([0,1]); u=y[idx]; idx.add_(1); u.sum().backward()
m=y>5; u=y[m]; m.zero_(); u.sum().backward()
m=y>5; u=torch.where(m,y,0.); m.zero_(); u.sum().backward()
m=y>5; u=y.masked_fill(m,0.); m.zero_(); u.sum().backward()
y.mul_(y).sum().backward()
y.mul_(y[0]).sum().backward()
y[0].mul_(y[1]).sum().backward()
y[0].mul_(y[0]).sum().backward()
y.div_(w).sum().backward()
y.clone().sigmoid_().sum().backward()
y.add_(y).sum().backward(); print(x.grad)
y+=1; y+=y; y.sum().backward(); print(x.grad)
y[0]+=1
y[0]+=w; y[:,1]*=2; y[y>3]-=1; y.sum().backward(); print(x.grad,w.grad)
x+=1
y=y.T; y[0].mul_(2)
y=x.sum(); y.mul_(2); y.backward(); print(x.grad)
y=x.sum(); v=y.view(1); v.mul_(2); y.backward(); print(x.grad, y)
y=x.sum(); v=y.view(1); y.mul_(2); v.sum().backward(); print(x.grad, v)
y=x[0,0]
y=x.clone()[0,0]; y.mul_(2)
y.retain_grad(); y.mul_(2); y.sum().backward(); print(y.grad)
y.retain_grad(); y[0].mul_(2); y.sum().backward(); print(y.grad)
v=y[0]; v.retain_grad(); y.mul_(2); v.sum().backward(); print(v.grad)
v=y[0]; v.retain_grad(); v.mul_(2); y.sum().backward(); print(v.grad)
h=y.register_hook(lambda g: print("hook",g[0,0])); y.mul_(2); y.sum().backward()
h=y.register_hook(lambda g: print("hook",g[0,0])); y[0].mul_(2); y.sum().backward()
v=y[0]; v.register_hook(lambda g: print(1)); v.mul_(2); v.register_hook(lambda g: print(2)); v.sum().backward()
v=y[0]; v.register_hook(lambda g: g*5); v.mul_(2); v.add_(1); y.sum().backward(); print(x.grad)
v=y[0]; v.register_hook(lambda g: print("hook",g)); s=(v*3).sum(); v.mul_(2); (s+y.sum()).backward(); print(x.grad)
v=y[0]; v.grad_fn.register_hook(lambda i,o: print("node",i)); v.mul_(2); v.sum().backward(); print(x.grad)
v=y.view(4,3); v.register_hook(print); w=v[0]; w.register_hook(print); w.mul_(2); v.sum().backward(); print(x.grad)
v=y[0]; v.register_hook(lambda g: print("hook",g)); y.mul_(2); v.sum().backward(); print(x.grad)
x.grad=torch.ones(3,4); g=x.grad; (x*2).sum().backward(); print(g[0], g._version)
z.data=w; y=z
y=torch.zeros(3,4); y[0]=w; y[1]=y[0]*2; y.sum().backward(); print(w.grad)
y=torch.zeros(3,4); y.requires_grad_(); y[0]=w
y=torch.zeros(3,4); v=y[0]; y.requires_grad_(); v.mul_(2)
y=torch.zeros(3,4); v=y[0]; y.requires_grad_(); v.mul_(w)
v=z[0]; v.requires_grad_(); v.mul_(2)
v=z[0]; v.requires_grad_(); z.mul_(2)
v=z[0]; v.requires_grad_(); z.mul_(w); y=v
v=z[0]; z.requires_grad_(); print(v.requires_grad); y=v
v=inference(lambda: x[0]); print(v.is_inference(), v.requires_grad); v.add_(1)
v=inference(lambda: z[0]); z.mul_(w); v*1
v=inference(lambda: z[0]); z.add_(1); y=v*2
inference(lambda: z.add_(1)); y=z
v=inference(lambda: y[0]); y.mul_(2); print(v)
v=no_grad(lambda: x[0]); y=v*2
v=no_grad(lambda: x[0]); print(v, v.requires_grad, v.is_leaf); no_grad(lambda: x.add_(1)); print(v)
v=no_grad(lambda: x.reshape(12)); print(v.requires_grad); v=no_grad(lambda: x.t().reshape(12)); print(v.requires_grad)
a=x.unbind(); no_grad(lambda: x.mul_(2)); print(a[0])
a=x.unbind(); no_grad(lambda: x.mul_(2)); a[0]*2
v=y[0]; d=v.detach(); d.zero_(); y=v
d=y.detach(); d.mul_(w); y.sum().backward(); y=d
d=y.detach(); v=d[0]; v.mul_(w); y=d
v=y.T[0]; v.mul_(2); v.add_(w[:3]); y=y*y
v=y[:, 1]; u=y[1]; v.mul_(2); u.add_(w); v.mul_(u[1]); y=u
v=y.expand(2, 3, 4)[0]; v.mul_(2); y=v
v=y.unfold(1, 2, 1); y.mul_(2); y=v*v
v=y.diagonal(); v.copy_(w[:3]); y.diagonal()[1]=5
v=y.as_strided((2, 2), (1, 2)); y.mul_(w); y=v
v=y.as_strided((2, 2), (4, 1)); v.mul_(2); y=y*1
y.view(-1)[y.view(-1) > 5] = 0
y[1:].mul_(y[:2].clone())
y[1:].copy_(y[:2])
y[1:] = y[:2]
y[1:] += y[:2]
y.t().copy_(z.t()); y.T[0]=w[:3]
s=y[0,0]; s.mul_(2); s+=1; y=s
s=y.sum(); t=s*s; s.zero_(); t.backward()
s=y.sum(); s.zero_(); s.add_(w.sum()); y=s
s=y.sum(); v=s.view(1,1); v[0,0]=w[1]; y=s
s=y.sum(); s[()]=w[1]; y=s
s=y.sum(); s[...]=3; y=s
z[0,0]=w[1]; z[1]=z[0]; y=z
z[m]=w[0]*w[1]; y=z
z[[0,0]]=w; y=z
z.index_put_((torch.tensor([0,0]),),w,accumulate=True); y=z
z[1:3,[0,2]]=w[:2]; y=z
y.masked_fill_(m,w[1]); y[m]*=2
y.requires_grad_(); y.sum().backward()
u=y[1]; y[0]=u*u; y[1]=0; y=y*1
u=y[1]*w; y[1]=0; u.sum().backward()
u=y[1]; q=u*w; u.zero_(); q.sum().backward()
q=y*w; y=None; q.sum().backward(); y=q
w.detach().add_(1); y=y*w
v=w*w; w.detach().add_(1); v.sum().backward()
v=w*w; no_grad(lambda: w.add_(1)); v.sum().backward()
v=w.exp(); no_grad(lambda: v.add_(1)); v.sum().backward()
v=y.sigmoid(); v.t_(); v.sum().backward()
y.t_(); y.mul_(2)
y.t_(); y[0]=5
v=y[0]; v.unsqueeze_(0); v.mul_(2)
v=y[0]; v.unsqueeze_(0); y.mul_(2); y=v
y.retain_grad(); v=y[0]; v.retain_grad(); v.mul_(3); y.sum().backward(); print(y.grad, v.grad)
# where no gradient is wanted, nothing is saved
v=no_grad(lambda: x[0]); s=v*v; no_grad(lambda: x.mul_(2)); (s*w).sum().backward(); y=w.grad*1
v=no_grad(lambda: y[0]); s=v*v+w; no_grad(lambda: v.mul_(2)); s.sum().backward(); y=w.grad*1
v=no_grad(lambda: x[0]); s=v@v; no_grad(lambda: x.mul_(2)); (s*w).sum().backward(); y=w.grad*1
v=no_grad(lambda: x[0]); s=torch.addcmul(w,v,v); no_grad(lambda: x.mul_(2)); s.sum().backward(); y=w.grad*1
v=no_grad(lambda: x[0]); s=torch.where(v>1,v*v,v)+w; no_grad(lambda: x.mul_(2)); s.sum().backward(); y=w.grad*1
v=no_grad(lambda: x[0]); s=v*w; no_grad(lambda: x.mul_(2)); s.sum().backward()
v=no_grad(lambda: x[0]); s=v/v; no_grad(lambda: x.mul_(2)); (s*w).sum().backward()
v=no_grad(lambda: x[0]); s=v.sin()*w; no_grad(lambda: x.mul_(2)); s.sum().backward()
v=no_grad(lambda: x[0]); s=v*w; print(s.grad_fn._saved_self, s.grad_fn._saved_other)
v=no_grad(lambda: x[0]); s=v*v; print(s.grad_fn._saved_self, s.grad_fn._saved_other)
# what is read must not be written
i=torch.arange(3); y=i.index_fill_(0,i,1)
i=torch.arange(3); y=i[1:].index_fill_(0,i[:2],1)
i=torch.arange(3); y=i.index_fill_(0,i.clone(),i[2])
i=torch.arange(3); y=i.index_copy_(0,i.clone(),i)
i=torch.arange(3); y=i.index_add_(0,i.clone(),i[:])
i=torch.arange(3); y=i.scatter_(0,i,1)
i=torch.arange(3); y=i.scatter_add_(0,i.clone(),i)
i=torch.arange(3); i[i]=1; y=i
i=torch.arange(3); i[[0,1,2]]=i; y=i
i=torch.arange(3); i[[0,1]]=i[1:]*1; i[i>0]=i[1]; y=i
i=torch.arange(3)>1; i[i]=False; y=i
i=torch.arange(4)>1; y=i[:3].masked_fill_(i[1:],True)
y=torch.add(z[1:],1,out=z[:2])
y=z[1:].copy_(z.data[:-1])
y=z[1:].add_(z.data[:-1])
y=z.data[1:].add_(z.data[:-1])
y=z.data.data[1:].add_(z.detach()[:-1])
y=z.add_(z.data)
y=z.data.mul_(z)
y=z.data.mul_(z.sum())
z.data /= z.data.sum(); y=z
z.data[0]=z[0]; y=z
i=torch.arange(3); y=i.index_add_(0,i.clone(),i.data)
i=torch.arange(3); y=i.scatter_(0,i.data,1)
y=torch.cat([z[1:],z[:1]],out=z)
y=torch.index_select(z,0,torch.tensor([2,1,0]),out=z)
y=torch.add(z,z,out=z)
y=torch.ones(3,0) in z
y=torch.add(z[:1],z,out=z[:1])
t=z[:1].clone(); y=torch.add(t,z,out=t)
y=torch.ones(4).expand(3,4).t_()
y=torch.ones(4).expand(1,3,4).squeeze_(0)
y=torch.ones(4).expand(3,4).unsqueeze_(0)
y=torch.nn.Parameter(inference(lambda: torch.ones(3,4)))
s=y.sum(dtype=torch.bfloat16); t=s/torch.tensor([2.,4.]); s*=0; t.sum().backward(); y=x.grad
t=y/torch.arange(1,5); y*=0; t.sum().backward(); y=x.grad
t=y/torch.tensor(2); y*=0; t.sum().backward(); y=x.grad
t=y*torch.arange(4); y*=0; t.sum().backward(); y=x.grad
t=y.double(); u=t*y; t*=0; u.sum().backward()
y=torch.ones(4) in z
v=no_grad(lambda: x[0]); y,=torch.autograd.grad((v*2).sum(), v, allow_unused=True); print(y)
v=no_grad(lambda: x[0]); torch.autograd.grad((v*2).sum(), v)
v=inference(lambda: y[0]); torch.autograd.grad((v*x).sum(), [x, v])
x.data=3
x.data=[1.0]
""")


def setting(t):
    """The names that programs use."""
    x = t.arange(12.0).reshape(3, 4).clone().requires_grad_()

    def no_grad(f):
        with t.no_grad():
            return f()

    def inference(f):
        with t.inference_mode():
            return f()

    return {
        "torch": t, "no_grad": no_grad, "inference": inference, "x": x, "y": x.clone(), "z": t.ones(3, 4),
        "w": t.arange(4.0).requires_grad_(), "n": t.ones(3, 4).int(), "b": t.ones(3, 4).bool(),
        "m": t.tensor([[True, False, True, False], [False] * 4, [True] * 4]),
    }  # fmt: skip


def played(t, program):
    """What a program prints and leaves behind, or the error that it raises."""
    names, printed = setting(t), io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(program, names)
            y = names["y"]
            seen = [
                chain(y.grad_fn),
                y.requires_grad,
                y._version,
                names["x"]._version,
                tuple(y.stride()),
                y._base is not None,
            ]
            values = [y.detach().tolist()]
            if y.grad_fn is not None:
                y.sum().backward()
        except Exception as e:
            return [type(e).__name__, str(e), printed.getvalue()], []
        values += [None if names[k].grad is None else names[k].grad.tolist() for k in "xw"]
        return [*seen, printed.getvalue()], values


@over("program", PROGRAMS)
def test_program_as_pytorch(program):
    torch = pytest.importorskip("torch")
    (mine, values), (theirs, expected) = (played(t, program) for t in (engine, torch))
    assert mine == theirs
    assert len(values) == len(expected)
    for a, b in zip(values, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-6)


RESHAPED = {
    "transpose_": lambda x: x.transpose_(0, 1),
    "t_": lambda x: x.t_(),
    "squeeze_": lambda x: x.squeeze_(0),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
}
SOURCES = {
    "leaf": lambda t, x: x,
    "view": lambda t, x: (x * 2).view(2, 3),
    "row": lambda t, x: (x * 2)[1:],
    "view of a leaf": lambda t, x: x.view(2, 3),
    "one of many": lambda t, x: (x * 2).view(1, 2, 3).unbind()[0],
    "custom": lambda t, x: type("F", (t.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: x.view_as(x)), "backward": staticmethod(lambda ctx, g: g)
    }).apply(x * 2),
}  # fmt: skip


@over("source, reshape", itertools.product(SOURCES, RESHAPED))
def test_what_is_reshaped_in_place_without_grad_stays_in_its_graph(source, reshape):
    pytest.importorskip("torch")

    def program(t, made_recorded, requires_grad):
        x = t.arange(6.0).view(2, 3).requires_grad_(requires_grad)
        with t.set_grad_enabled(made_recorded):
            y = SOURCES[source](t, x)
        with t.no_grad():
            RESHAPED[reshape](y)
        node = y.grad_fn
        seen = [y.shape, y.requires_grad, y.is_leaf, y._version, node and node.name()]
        if source != "leaf" and requires_grad:
            y.add_(1)
        if requires_grad:
            (y * y.detach()).sum().backward()
        return [*seen, y.grad_fn and y.grad_fn.name(), x.grad]

    for options in ((True, True), (False, True), (True, False)):
        if source == "view of a leaf" and options == (False, True):
            continue  # PyTorch forgets of it what it refuses of others, that it was made without recording
        mine, theirs = (outcome(name, lambda t, options=options: program(t, *options)) for name in ("engine", "torch"))
        assert mine == theirs, options


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_scalar_results_are_written_in_place_too(name):
    t = pytest.importorskip(name)
    x = t.arange(3.0, requires_grad=True)
    total = x.sum()
    same = total
    alias = total.view(1)
    total *= 2
    alias += 1
    assert same is total and total.item() == 7.0 and alias.item() == 7.0 and total._version == alias._version == 2
    total.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_saved_scalar_that_becomes_an_array_is_still_guarded(name):
    t = pytest.importorskip(name)
    u = t.ones(3, requires_grad=True).sum()
    product = u * u
    u.view(1).add_(1)
    with pytest.raises(
        RuntimeError, match=r"\[torch.FloatTensor \[\]\], which is output 0 of .* is at version 1; expected version 0"
    ):
        product.backward()


def test_windows_that_overlap_are_not_written():
    windows = engine.arange(4.0).unfold(0, 2, 1)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        windows.mul_(2)
    for same in (windows.detach(), windows.data):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            same.mul_(2)
    disjoint = engine.arange(4.0).unfold(0, 2, 2)
    disjoint.mul_(2)
    assert disjoint.tolist() == [[0.0, 2.0], [4.0, 6.0]]


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_a_loop_of_writes_into_rows(name):
    t = pytest.importorskip(name)
    w = t.tensor([1.0, 2.0], requires_grad=True)
    table = t.zeros(5, 2)
    table[0] = w
    for i in range(1, 5):
        table[i] = table[i - 1].clone() * w
    table[4].sum().backward()
    assert table._version == 5 and w.grad.tolist() == [5.0, 80.0]


def test_views_leave_no_reference_cycles():
    gc.collect()
    gc.disable()
    try:
        x = engine.arange(6.0, requires_grad=True)
        y = x.clone()
        v = y[1:]
        v *= 2
        rows = y.view(2, 3).unbind()
        del x, y, v, rows
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_many_views_do_not_pile_up():
    x = engine.zeros(4)
    for _ in range(10_000):
        x[1:]
    assert len(x.__dict__["views"]) < 10


# ---- the machine


class Memory:
    def __init__(self, values):
        self.values = np.array(values, np.float64).reshape(-1)


class Base:
    """What views share in the graph: the tangents of a memory, element by element."""

    def __init__(self, memory, tangents):
        self.memory, self.tangents = memory, np.array(tangents, np.float64).reshape(-1)


class Model:
    """A tensor as places in a memory."""

    def __init__(self, base, places):
        self.base, self.places = base, places

    @staticmethod
    def new(values, tangents):
        values, tangents = np.broadcast_arrays(values, tangents)
        return Model(Base(Memory(values), tangents), np.arange(values.size).reshape(values.shape))

    @property
    def dual(self):
        return self.base.memory.values[self.places], self.base.tangents[self.places]

    def overlaps(self):
        return np.unique(self.places).size < self.places.size

    def write(self, values, tangents, recording):
        self.base.memory.values[self.places] = np.broadcast_to(values, self.places.shape)
        if recording:
            self.base.tangents[self.places] = np.broadcast_to(tangents, self.places.shape)


def affine(places):
    """Whether strides lead to all the places."""
    if not places.size:
        return True
    corner = places[(0,) * places.ndim]
    found = np.array(corner)
    for d, n in enumerate(places.shape):
        step = places[(0,) * d + (1,) + (0,) * (places.ndim - d - 1)] - corner if n > 1 else 0
        found = found[..., None] + step * np.arange(n)
    return np.array_equal(found, places)


VIEWS = cases("""
t[0]
t[-1]
t[1:]
t[::2]
t[..., 0]
t[:, 1]
t[None]
t[...]
t[-1, ..., None]
t.t()                      | t.T
t.transpose(0, -1)         | t.swapaxes(0, -1) if t.ndim else t
t.view(-1)                 | t.reshape(-1)
t.reshape(-1)
t.reshape(3, -1)
t.flatten()                | t.reshape(-1)
t.unsqueeze(-1)            | t[..., None]
t.squeeze()
t.squeeze(0)               | t.squeeze(0) if t.shape[:1] == (1,) else t
t.select(-1, 1)            | t[..., 1]
t.narrow(0, 1, 1)          | t[1:2]
t.expand(2, *t.shape)      | np.broadcast_to(t, (2, *t.shape))
t.diagonal()
t.movedim(0, -1)           | np.moveaxis(t, 0, -1) if t.ndim else t
t.unfold(-1, 2, 2)         | np.lib.stride_tricks.sliding_window_view(t, 2, -1)[..., ::2, :]
t.unbind()[1]              | t[1]
t.unbind(-1)[0]            | t[..., 0]
t.split(1)[1]              | t[1:2]
t.chunk(2, -1)[0]          | np.array_split(t, 2, -1)[0]
t.as_strided((2,), (1,))   | np.arange(2) + t.flat[0]
""")

RESULTS = cases("""
t * 1.5     | (a * 1.5, da * 1.5)
t * u       | (a * b, da * b + a * db)
t * t       | (a * a, 2 * a * da)
t + u       | (a + b, da + db)
t.sin()     | (np.sin(a), np.cos(a) * da)
t.sum()     | (a.sum(), da.sum())
t.clone()   | (a, da)
t[[0, -1]]  | (a[[0, -1]], da[[0, -1]])
t[t > 0]    | (a[a > 0], da[a > 0])
""")

WRITES = cases("""
t.mul_(0.5)       | (a * 0.5, da * 0.5)
t.add_(1)         | (a + 1, da)
t.mul_(u)         | (a * b, da * b + a * db)
t.add_(u)         | (a + b, da + db)
t.sub_(t)         | (a - a, da - da)
t.copy_(u)        | (b, db)
t.fill_(0.25)     | (0.25, 0.0)
t.zero_()         | (0.0, 0.0)
t.neg_()          | (-a, -da)
t.sin_()          | (np.sin(a), np.cos(a) * da)
t.masked_fill_(t > 0.1, 0.1) | (np.where(a > 0.1, 0.1, a), np.where(a > 0.1, 0.0, da))
""")

ASSIGNMENTS = cases("""
t[0] = 0.75        | t[0]
t[0] = u           | t[0]
t[..., 0] = u      | t[..., 0]
t[1:] = u          | t[1:]
t[...] = u         | t
t[[0, -1]] = 0.75  | t[[0, -1]]
t[t > 0.2] = 0.2   | t[a > 0.2]
t[None, 0] = u     | t[None, 0]
""")


def halves(line):
    """What the libraries run, and what the model runs."""
    left, _, right = line.partition("|")
    return left.strip(), right.strip() or left.strip()


class Entry:
    """One tensor of the game in each of the libraries, and its model."""

    def __init__(self, each, model):
        self.each, self.model = each, model


KNOWN = cases("""
modified inplace
being used in an in-place operation
modified by an inplace operation
refer to a single memory location
refers to a single memory location
at non-singleton dimension
doesn't match the broadcast shape
view size is not compatible
t() expects a tensor with <= 2 dimensions
is invalid for input of size
exceeds dimension size
the number of sizes provided
shape mismatch
expects at least a 1-dimensional tensor
cannot be applied to a 0-dim tensor
maximum size for tensor
""")


class Views(RuleBasedStateMachine):
    """Makes views, writes through them, computes and goes backward, in all the libraries at once."""

    def __init__(self):
        super().__init__()
        self.libraries = [engine]
        if HAVE_TORCH:
            import torch

            self.libraries.append(torch)
        rng = np.random.default_rng(0)
        self.entries, self.leaves = [], []
        self.alive = []  # the graph of PyTorch keeps the tensors that it saved, and knows their nodes
        for shape in ((2, 3), (3,)):
            values, tangents = rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape)
            leaf = Entry([t.tensor(values, requires_grad=True) for t in self.libraries], Model.new(values, tangents))
            self.leaves.append((leaf, tangents))
            self.entries.append(leaf)
        x = self.entries[0]
        self.entries.append(Entry([t * 1.0 for t in x.each], Model.new(*x.model.dual)))
        self.alive += self.entries
        self.entries.append(
            Entry([t.zeros(2, 3, dtype=t.float64) for t in self.libraries], Model.new(np.zeros((2, 3)), 0.0))
        )

    def pick(self, i):
        return self.entries[i % len(self.entries)]

    def add(self, entry):
        self.alive.append(entry)
        if entry.model.places.size <= 48 and entry.model.places.ndim <= 4:
            self.entries = [*self.entries[-9:], entry] if len(self.entries) > 10 else [*self.entries, entry]

    def run(self, statement, t, u=None, recording=True):
        """The results of a statement in the libraries; None if it raised an error, the same one in all of them."""
        found = []
        for n, library in enumerate(self.libraries):
            names = {"t": t.each[n], "u": u and u.each[n], "r": None}
            try:
                with contextlib.nullcontext() if recording else library.no_grad():
                    exec(f"r = {statement}" if " = " not in statement else statement, names)
                found.append(names["r"])
            except Exception as e:
                found.append(e)
        errors = [(type(f).__name__, str(f)) if isinstance(f, Exception) else None for f in found]
        if "backward" in statement and any(e is not None and "refers to a single memory" in e[1] for e in errors[1:]):
            return None  # PyTorch cannot go backward through a write into an expanded tensor
        lost = any(e is not None and "has been modified inplace" in e[1] for e in errors)
        assert all((e is None) == (errors[0] is None) for e in errors), (statement, errors)
        assert lost or all(e == errors[0] for e in errors), (statement, errors)  # of two errors, any may come first
        if errors[0] is not None:
            self.judge(found[0])
            return None
        return found

    def judge(self, error):
        """Without PyTorch: the errors that such programs may raise."""
        assert isinstance(error, (RuntimeError, IndexError)), error
        assert isinstance(error, IndexError) or any(k in str(error) for k in KNOWN), error

    @rule(i=st.integers(0, 99), line=st.sampled_from(VIEWS), recording=st.sampled_from([True, True, True, False]))
    def view(self, i, line, recording):
        t = self.pick(i)
        statement, model = halves(line)
        if statement.startswith("t.as_strided") and (not t.each[0].is_contiguous() or t.model.places.size < 2):
            return
        found = self.run(statement, t, recording=recording)
        if found is None:
            return
        places = np.asarray(eval(model, {"t": t.model.places, "np": np}))
        if affine(places):
            known = recording or found[0] is t.each[0]
            base = t.model.base if known else Base(t.model.base.memory, np.zeros_like(t.model.base.tangents))
            self.add(Entry(found, Model(base, places)))
        else:
            values, tangents = t.model.base.memory.values[places], t.model.base.tangents[places]
            self.add(Entry(found, Model.new(values, tangents * recording)))

    @rule(i=st.integers(0, 99))
    def detach(self, i):
        t = self.pick(i)
        base = Base(t.model.base.memory, np.zeros_like(t.model.base.tangents))
        self.add(Entry([x.detach() for x in t.each], Model(base, t.model.places)))

    @rule(
        i=st.integers(0, 99),
        j=st.integers(0, 99),
        line=st.sampled_from(RESULTS),
        recording=st.sampled_from([True, True, False]),
    )
    def compute(self, i, j, line, recording):
        t, u = self.pick(i), self.pick(j)
        statement, model = halves(line)
        found = self.run(statement, t, u, recording)
        if found is not None:
            (a, da), (b, db) = t.model.dual, u.model.dual
            values, tangents = eval(model, {"a": a, "da": da, "b": b, "db": db, "np": np})
            self.add(Entry(found, Model.new(values, tangents * recording)))

    @rule(
        i=st.integers(0, 99),
        j=st.integers(0, 99),
        line=st.sampled_from(WRITES),
        recording=st.sampled_from([True, True, True, False]),
    )
    def write(self, i, j, line, recording):
        t, u = self.pick(i), self.pick(j)
        statement, model = halves(line)
        if t.model.overlaps() and statement.startswith(("t.masked_fill_", "t.fill_", "t.zero_")):
            return  # PyTorch only warns, or fails in backward
        (a, da), (b, db) = t.model.dual, u.model.dual
        if self.run(statement, t, u, recording) is not None:
            t.model.write(*eval(model, {"a": a, "da": da, "b": b, "db": db, "np": np}), recording)

    @rule(
        i=st.integers(0, 99),
        j=st.integers(0, 99),
        line=st.sampled_from(ASSIGNMENTS),
        recording=st.sampled_from([True, True, False]),
    )
    def assign(self, i, j, line, recording):
        t, u = self.pick(i), self.pick(j)
        statement, part = halves(line)
        if t.model.overlaps() and "[[" in statement or "[t >" in statement:
            return  # PyTorch only warns
        (a, _), (b, db) = t.model.dual, u.model.dual
        if self.run(statement, t, u, recording) is not None:
            target = Model(t.model.base, eval(part, {"t": t.model.places, "a": a}))
            value = statement.partition(" = ")[2]
            if value == "u":
                while b.ndim > target.places.ndim:
                    b, db = b[0], db[0]
                target.write(b, db, recording)
            else:
                target.write(float(value), 0.0, recording)

    @rule(i=st.integers(0, 99), seed=st.integers(0, 9), weighted=st.booleans())
    def backward(self, i, seed, weighted):
        t = self.pick(i)
        if not t.each[0].requires_grad:
            return
        weights = np.random.default_rng(seed).uniform(0.5, 1.5, t.model.places.shape if weighted else ())
        u = Entry([library.tensor(weights) for library in self.libraries], None)
        statement = "(t * u).sum()" if weighted else "(t.sum() * u)"  # the cotangent of the latter is expanded
        if self.run(statement + ".backward(retain_graph=True)", t, u) is not None:
            grads = [[leaf.each[n].grad for leaf, _ in self.leaves] for n in range(len(self.libraries))]
            tangent = sum(
                (g.numpy() * d).sum() for g, (_, d) in zip(grads[0], self.leaves, strict=True) if g is not None
            )
            assert math.isclose(tangent, (t.model.dual[1] * weights).sum(), rel_tol=1e-7, abs_tol=1e-9)
            for mine, *theirs in zip(*grads, strict=True):
                for g in theirs:
                    assert (g is None) == (mine is None)
                    assert g is None or np.allclose(mine.numpy(), g.numpy(), 1e-9, 1e-12)
        for leaf, _ in self.leaves:
            for x in leaf.each:
                x.grad = None

    @invariant()
    def same_everywhere(self):
        for entry in self.entries:
            np.testing.assert_allclose(entry.each[0].detach().numpy(), entry.model.dual[0], 1e-9, 1e-12)
            seen = [self.seen(t) for t in entry.each]
            assert all(s == seen[0] for s in seen), seen

    @staticmethod
    def seen(t):
        try:
            node = t.grad_fn and t.grad_fn.name()
        except RuntimeError as e:
            node = str(e)
        place = t.storage_offset() if t.numel() else None
        return tuple(t.shape), t._version, t.requires_grad, node, t.is_contiguous(), place, t._base is not None


class ManyViews(Views):
    """The same, more often."""


TestViews, TestManyViews = Views.TestCase, pytest.mark.slow(ManyViews.TestCase)
for case, examples in ((TestViews, 25), (TestManyViews, 200)):
    case.settings = settings(max_examples=examples, stateful_step_count=25, suppress_health_check=list(HealthCheck))
